// SPDX-License-Identifier: Apache-2.0
// Every coin that is flipped, with what it decided: a key has one value on all
// nodes, reaches one decision at most and never serves two purposes.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/sampling/coins.h"
#include "gtest/gtest.h"
#include "tests/exactness/toy_cluster.h"

namespace outrider::testing::ledger {
namespace {

constexpr uint64_t kSeed = 20261121;

// The production coins, written down.
class Ledger final : public RandomSource {
 public:
  struct Entry {
    std::vector<double> question;  // weights, or {p, q}
    size_t answer = 0;
    int num_flips = 0;
  };
  using Entries = std::map<CoinKey, Entry>;
  // What the races of a position gave, in turn: drafter and target have one
  // noise and rows of their own.
  using Races = std::map<uint64_t, std::vector<TokenId>>;

  // A SPARSE row's tail is drawn whether or not it will be read; where it is
  // not, the next row of its position draws with that coin again.
  explicit Ledger(bool tails_are_drawn_ahead = false)
      : tails_are_drawn_ahead_(tails_are_drawn_ahead) {}

  bool Accept(const CoinKey& key, double p, double q) override {
    const bool accepted = coins_.Accept(key, p, q);
    Write(key, {p, q}, accepted ? 1 : 0);
    return accepted;
  }
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override {
    const size_t index = coins_.Categorical(key, weights);
    Write(key, {weights.begin(), weights.end()}, index);
    return index;
  }
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override {
    const size_t index = coins_.Race(position, ids, weights);
    races_[position].push_back(ids[index]);
    return index;
  }

  const Entries& entries() const { return entries_; }
  const Races& races() const { return races_; }
  int CountOf(Purpose purpose) const {
    int count = 0;
    for (const auto& [key, entry] : entries_) count += key.purpose == purpose;
    return count;
  }

 private:
  void Write(const CoinKey& key, std::vector<double> question, size_t answer) {
    Entry& entry = entries_[key];
    const bool may_differ =
        tails_are_drawn_ahead_ && key.purpose == Purpose::kTail;
    if (++entry.num_flips > 1 && !may_differ) {
      EXPECT_EQ(entry.question, question) << "one coin, two decisions";
      EXPECT_EQ(entry.answer, answer) << "one coin, two values";
    }
    entry.question = std::move(question);
    entry.answer = answer;
  }

  const bool tails_are_drawn_ahead_;
  Coins coins_{kSeed};
  Entries entries_;
  Races races_;
};

const ToyModel& Toy() {
  static const ToyModel model(5, DrafterKind::kReversed);
  return model;
}

ClusterConfig Config() {
  return {.sampling = {.temperature = 1.1},
          .drafting = {.support_size = 3},
          .draft_lengths = {3, 1, 0, 4, 2},
          .has_first_round = true,
          .max_length = 1 << 16};
}

TokenSeq Text(ToyCluster& cluster) {
  const auto tokens = cluster.session().committed().tokens();
  return {tokens.begin(), tokens.end()};
}

std::set<CoinKey> KeysOf(const Ledger& ledger) {
  std::set<CoinKey> keys;
  for (const auto& [key, entry] : ledger.entries()) keys.insert(key);
  return keys;
}

// The coins and the text are the same, whoever draws and judges.
TEST(LedgerTest, EveryCoinIsFlippedOnceInAFaultFreeSession) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    TokenSeq text;
    for (const ReplyFormat format :
         {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
      const bool is_sparse = format == ReplyFormat::kSparse;
      Ledger ledger(/*tails_are_drawn_ahead=*/is_sparse);
      ClusterConfig config = Config();
      config.rule = rule;
      config.reply_format = format;
      ToyCluster cluster(config, Toy(), ledger);
      for (int i = 0; i < 300; ++i) ASSERT_TRUE(cluster.Round().ok());
      for (const auto& [key, entry] : ledger.entries()) {
        if (!is_sparse || key.purpose != Purpose::kTail) {
          EXPECT_EQ(entry.num_flips, 1);
        }
        // Block verification reads coins after the commit point: they are
        // the round's own.
        const bool is_rounds_own =
            key.purpose == Purpose::kDraft ||
            (rule == RuleKind::kBlock && key.purpose == Purpose::kAccept);
        EXPECT_EQ(key.generation > 0, is_rounds_own);
        // Positions count the prompt, and what is flipped becomes text.
        EXPECT_GE(key.position, 1u);
      }
      EXPECT_TRUE(ledger.races().empty());
      if (text.empty()) text = Text(cluster);
      EXPECT_EQ(text, Text(cluster));
    }
  }
}

// The noise is shared, and it is all there is: what is committed is the
// target's own race, the last of its position.
TEST(LedgerTest, CoupledSessionsRaceAndFlipNothingElse) {
  for (const ReplyFormat format : {ReplyFormat::kFull, ReplyFormat::kTokens}) {
    Ledger ledger;
    ClusterConfig config = Config();
    config.rule = RuleKind::kCoupled;
    config.reply_format = format;
    ToyCluster cluster(config, Toy(), ledger);
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(cluster.Round().ok());
    EXPECT_TRUE(ledger.entries().empty());
    const TokenSeq text = Text(cluster);
    for (size_t i = 1; i < text.size(); ++i) {
      ASSERT_TRUE(ledger.races().contains(i));
      EXPECT_EQ(ledger.races().at(i).back(), text[i]);
    }
  }
}

TEST(LedgerTest, EveryPurposeHasItsCoins) {
  Ledger ledger;
  const ClusterConfig config = Config();
  ToyCluster cluster(config, Toy(), ledger);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(cluster.Round().ok());
  EXPECT_GT(ledger.CountOf(Purpose::kDraft), 300);
  EXPECT_GT(ledger.CountOf(Purpose::kAccept), 100);
  EXPECT_GT(ledger.CountOf(Purpose::kResidual), 50);
  EXPECT_GT(ledger.CountOf(Purpose::kTail), 50);
  EXPECT_EQ(ledger.CountOf(Purpose::kGumbel), 0);
}

TEST(LedgerTest, NoTwoKeysShareANumber) {
  Ledger ledger;
  const ClusterConfig config = Config();
  ToyCluster cluster(config, Toy(), ledger);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(cluster.Round().ok());
  const Coins coins(kSeed);
  std::map<double, CoinKey> seen;
  for (const auto& [key, entry] : ledger.entries()) {
    EXPECT_TRUE(seen.emplace(coins.Uniform(key), key).second);
  }
}

TEST(LedgerTest, EveryProcessMakesTheSameCoinsOfTheSeed) {
  Ledger ledger;
  const ClusterConfig config = Config();
  ToyCluster shared(config, Toy(), ledger);
  ToyCluster production(config, Toy(), kSeed);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(shared.Round().ok());
    ASSERT_TRUE(production.Round().ok());
  }
  EXPECT_EQ(Text(shared), Text(production));
}

TEST(LedgerTest, PlainRoundsFlipTailCoinsOnly) {
  Ledger ledger;
  ClusterConfig config = Config();
  config.draft_lengths = {0};
  ToyCluster cluster(config, Toy(), ledger);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(cluster.Round().ok());
  EXPECT_EQ(ledger.CountOf(Purpose::kTail), 20);
  EXPECT_EQ(ledger.entries().size(), 20u);
}

TEST(LedgerTest, ARepeatedCallAddsNoKeyAndChangesNoToken) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    for (const ReplyFormat format :
         {ReplyFormat::kFull, ReplyFormat::kTokens}) {
      ClusterConfig config = Config();
      config.rule = rule;
      config.reply_format = format;
      Ledger once;
      ToyCluster cluster(config, Toy(), once);
      ClusterConfig repeated = config;
      repeated.num_deliveries = 2;
      Ledger twice;
      ToyCluster repeating(repeated, Toy(), twice);
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(cluster.Round().ok());
        ASSERT_TRUE(repeating.Round().ok());
      }
      EXPECT_EQ(Text(cluster), Text(repeating));
      EXPECT_EQ(KeysOf(once), KeysOf(twice));
      const bool verifier_judges = format == ReplyFormat::kTokens;
      for (const auto& [key, entry] : twice.entries()) {
        const bool is_nodes = verifier_judges || key.purpose == Purpose::kDraft;
        EXPECT_EQ(entry.num_flips, is_nodes ? 2 : 1);
      }
    }
  }
}

// A round that fails after the draft is run again with a draft of its own
// step; what judges it has not been flipped before.
TEST(LedgerTest, AFailedRoundAddsDraftKeysOnly) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    Ledger ledger;
    ClusterConfig config = Config();
    config.rule = rule;
    ToyCluster cluster(config, Toy(), ledger);
    int num_calls = 0;
    cluster.verify_stub().hooks().after = [&](const VerifyCall&, VerifyReply&) {
      return ++num_calls % 2 == 0 ? absl::UnavailableError("lost")
                                  : absl::OkStatus();
    };
    int num_failed = 0;
    for (int i = 0; i < 100; ++i) {
      const std::set<CoinKey> before = KeysOf(ledger);
      if (cluster.Round().ok()) continue;
      ++num_failed;
      for (const CoinKey& key : KeysOf(ledger)) {
        EXPECT_TRUE(before.contains(key) || key.purpose == Purpose::kDraft);
      }
    }
    EXPECT_EQ(num_failed, 50);
    for (const auto& [key, entry] : ledger.entries()) {
      EXPECT_EQ(entry.num_flips, 1);
    }
  }
}

TEST(LedgerTest, AVerifierThatLostTheSessionCostsNoCoin) {
  Ledger kept;
  Ledger lost;
  const ClusterConfig config = Config();
  ToyCluster cluster(config, Toy(), kept);
  ToyCluster evicting(config, Toy(), lost);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(cluster.Round().ok());
    ASSERT_TRUE(evicting.Round().ok());
  }
  Session& session = evicting.session();
  ASSERT_TRUE(evicting.verifier().Release(
      {.session = session.id(),
       .incarnation = session.verifier_cache().incarnation(),
       .step = 1u << 20}));
  // The same drafts are sent once more: same coins, same tokens.
  ASSERT_TRUE(cluster.Round().ok());
  ASSERT_TRUE(evicting.Round().ok());
  EXPECT_EQ(evicting.stats().verifier.num_misses(), 1);
  EXPECT_EQ(Text(cluster), Text(evicting));
  EXPECT_EQ(KeysOf(kept), KeysOf(lost));
}

}  // namespace
}  // namespace outrider::testing::ledger
