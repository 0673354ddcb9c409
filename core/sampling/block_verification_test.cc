// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/block_verification.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "core/sampling/rejection.h"
#include "core/testing/enumerating_source.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::EnumeratingSource;
using TokenSeq = std::vector<TokenId>;

constexpr uint64_t kStart = 5;
constexpr int kVocabSize = 3;

// A row of each model for every context of up to k tokens.
struct Pair {
  std::map<TokenSeq, Distribution> target = {};
  std::map<TokenSeq, Distribution> drafter = {};
};

Distribution RandomRow(std::mt19937& bits) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<TokenId> ids;
  std::vector<double> weights;
  for (TokenId id = 0; id < kVocabSize; ++id) {
    const double kind = uniform(bits);
    if (kind < 0.2 && id > 0) continue;  // some rows exclude tokens
    ids.push_back(id);
    weights.push_back(kind < 0.3 ? 1e-300 : uniform(bits) + 1e-9);
  }
  return Distribution::FromSorted(std::move(ids), std::move(weights));
}

Pair RandomPair(int k, std::mt19937& bits) {
  Pair pair;
  std::vector<TokenSeq> contexts = {{}};
  for (size_t i = 0; i < contexts.size(); ++i) {
    pair.target.emplace(contexts[i], RandomRow(bits));
    pair.drafter.emplace(contexts[i], RandomRow(bits));
    if (static_cast<int>(contexts[i].size()) == k) continue;
    for (TokenId id = 0; id < kVocabSize; ++id) {
      TokenSeq longer = contexts[i];
      longer.push_back(id);
      contexts.push_back(std::move(longer));
    }
  }
  return pair;
}

struct Outcome {
  std::map<TokenSeq, double> law = {};  // of k + 1 tokens
  double mean_accepted = 0;
};

// What a round emitted, continued by the target up to k + 1 tokens.
void AddContinued(const Pair& pair, int k, const TokenSeq& text, double mass,
                  std::map<TokenSeq, double>& law) {
  if (static_cast<int>(text.size()) == k + 1) {
    law[text] += mass;
    return;
  }
  const Distribution& p = pair.target.at(text);
  for (const TokenId id : p.support()) {
    TokenSeq longer = text;
    longer.push_back(id);
    AddContinued(pair, k, longer, mass * p(id), law);
  }
}

// Every branch of one round with k drafts.
Outcome RunRound(const AcceptanceRule& rule, const Pair& pair, int k) {
  Outcome outcome;
  EnumeratingSource source;
  while (source.NextTrace()) {
    Draft draft = {.start = kStart};
    std::vector<TargetRow> target;
    for (int i = 0; i < k; ++i) {
      const Distribution& q = pair.drafter.at(draft.tokens);
      target.push_back(TargetRow::FromDense(pair.target.at(draft.tokens),
                                            q.support(), kStart + i, source));
      draft.distributions.push_back(q);
      draft.tokens.push_back(q.support()[source.Categorical(
          {Purpose::kDraft, kStart + i, 1}, q.weights())]);
    }
    target.push_back(TargetRow::FromDense(pair.target.at(draft.tokens), {},
                                          kStart + k, source));
    const Verdict verdict = rule.Judge(draft, target, source);
    TokenSeq text(draft.tokens.begin(),
                  draft.tokens.begin() + verdict.num_accepted);
    text.push_back(verdict.next_token);
    AddContinued(pair, k, text, source.probability(), outcome.law);
    outcome.mean_accepted += source.probability() * verdict.num_accepted;
  }
  EXPECT_EQ(source.violation(), "");
  return outcome;
}

TEST(BlockVerificationTest, EmitsTheTargetsLawWhateverDrafts) {
  std::mt19937 bits(7);
  for (const int k : {0, 1, 2, 3}) {
    for (int trial = 0; trial < (k == 3 ? 20 : 100); ++trial) {
      const Pair pair = RandomPair(k, bits);
      std::map<TokenSeq, double> plain;
      AddContinued(pair, k, {}, 1, plain);
      for (const auto& [text, mass] : RunRound(BlockRule(), pair, k).law) {
        EXPECT_NEAR(mass, plain[text], 1e-14);
        if (plain[text] == 0) {
          EXPECT_EQ(mass, 0);
        }
        plain[text] = 0;
      }
      for (const auto& [text, mass] : plain) EXPECT_NEAR(mass, 0, 1e-14);
    }
  }
}

TEST(BlockVerificationTest, AcceptsNoFewerDraftsThanRejection) {
  std::mt19937 bits(8);
  double gained = 0;
  for (const int k : {1, 2, 3}) {
    for (int trial = 0; trial < 20; ++trial) {
      const Pair pair = RandomPair(k, bits);
      const double block = RunRound(BlockRule(), pair, k).mean_accepted;
      const double one_by_one =
          RunRound(RejectionRule(), pair, k).mean_accepted;
      EXPECT_GE(block, one_by_one - 1e-14);
      if (k == 1) {
        EXPECT_NEAR(block, one_by_one, 1e-14);
      }
      gained = std::max(gained, block - one_by_one);
    }
  }
  EXPECT_GT(gained, 0.05);
}

TEST(BlockVerificationTest, EqualRowsAcceptEverything) {
  std::mt19937 bits(9);
  for (int trial = 0; trial < 20; ++trial) {
    Pair pair = RandomPair(3, bits);
    pair.drafter = pair.target;
    EXPECT_NEAR(RunRound(BlockRule(), pair, 3).mean_accepted, 3, 1e-14);
  }
}

TEST(BlockVerificationTest, OneHotRowsAreGreedyVerification) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const Distribution one = Distribution::OneHot(1);
  for (int num_right = 0; num_right <= 3; ++num_right) {
    Draft draft = {.start = kStart};
    std::vector<TargetRow> target;
    for (int i = 0; i < 3; ++i) {
      draft.tokens.push_back(i < num_right ? 1 : 0);
      draft.distributions.push_back(Distribution::OneHot(draft.tokens[i]));
      target.push_back(TargetRow::FromDense(
          one, draft.distributions[i].support(), kStart + i, source));
    }
    target.push_back(TargetRow::FromDense(one, {}, kStart + 3, source));
    EXPECT_EQ(BlockRule().Judge(draft, target, source),
              (Verdict{num_right, 1}));
  }
}

// Notes which coins are flipped, and accepts nothing.
class Refusing final : public RandomSource {
 public:
  bool Accept(const CoinKey& key, double, double) override {
    asked.push_back(key);
    return false;
  }
  size_t Categorical(const CoinKey&, absl::Span<const double>) override {
    return 0;
  }
  size_t Race(uint64_t, absl::Span<const TokenId>,
              absl::Span<const double>) override {
    return 0;
  }
  std::vector<CoinKey> asked;
};

// They lie after the commit point, where the next round judges again.
TEST(BlockVerificationTest, ItsCoinsBelongToTheBlock) {
  Refusing coins;
  const Distribution q = Distribution::FromSorted({0, 1}, {0.9, 0.1});
  const Distribution p = Distribution::FromSorted({0, 1}, {0.2, 0.8});
  const Draft draft = {
      .start = kStart, .tokens = {0, 0}, .distributions = {q, q}};
  std::vector<TargetRow> target;
  for (const int i : {0, 1}) {
    target.push_back(TargetRow::FromDense(p, q.support(), kStart + i, coins));
  }
  target.push_back(TargetRow::FromDense(p, {}, kStart + 2, coins));
  EXPECT_EQ(BlockRule().Judge(draft, target, coins).num_accepted, 0);
  EXPECT_EQ(coins.asked,
            (std::vector<CoinKey>{{Purpose::kAccept, kStart + 1, kStart},
                                  {Purpose::kAccept, kStart, kStart}}));
}

// Only rounding can refuse the last draft there: the one before it stands.
TEST(BlockVerificationTest, WhereTheRowsAreEqualNothingIsLeftToOffer) {
  Refusing coins;
  const Distribution q = Distribution::FromSorted({0, 1}, {0.5, 0.5});
  const Draft draft = {
      .start = kStart, .tokens = {0, 1}, .distributions = {q, q}};
  std::vector<TargetRow> target;
  for (const int i : {0, 1}) {
    target.push_back(TargetRow::FromDense(q, q.support(), kStart + i, coins));
  }
  target.push_back(TargetRow::FromDense(q, {}, kStart + 2, coins));
  const Verdict verdict = BlockRule().Judge(draft, target, coins);
  EXPECT_EQ(verdict.num_accepted, 1);
  EXPECT_GT(q(verdict.next_token), 0);
}

TEST(BlockVerificationDeathTest, NeedsOneRowMoreThanDrafts) {
  Refusing coins;
  EXPECT_DEATH(BlockRule().Judge({.start = kStart}, {}, coins), "check failed");
}

}  // namespace
}  // namespace outrider
