// SPDX-License-Identifier: Apache-2.0
// The production coins, from seed to text: joint outcomes of many seeds against
// the plain decoder. Enumeration can not see coins that are shared between
// purposes; this can, as its negative controls show. Fixed seeds.
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/sampling/coins.h"
#include "core/testing/chi_square.h"
#include "gtest/gtest.h"
#include "tests/exactness/plain_decoder.h"
#include "tests/exactness/toy_cluster.h"

namespace outrider::testing::statistics {
namespace {

constexpr int kNumSeeds = 20000;
constexpr int kLength = 3;

// Coins whose keys pass through a function: negative controls.
class RenamedCoins final : public RandomSource {
 public:
  using Rename = std::function<CoinKey(const CoinKey&)>;
  RenamedCoins(uint64_t seed, Rename rename)
      : coins_(seed), rename_(std::move(rename)) {}
  bool Accept(const CoinKey& key, double p, double q) override {
    return coins_.Accept(rename_(key), p, q);
  }
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override {
    return coins_.Categorical(rename_(key), weights);
  }
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override {
    return coins_.Race(rename_({Purpose::kGumbel, position}).position, ids,
                       weights);
  }

 private:
  Coins coins_;
  const Rename rename_;
};

ClusterConfig Config() {
  return {.sampling = {.temperature = 1.0},
          .drafting = {.support_size = 2},
          .draft_lengths = {2},
          .max_length = 64};
}

// By default ranks are reversed, and there are two possible tokens in the tail.
ChiSquare RunSeeds(const ClusterConfig& config,
                   const RenamedCoins::Rename& rename,
                   DrafterKind drafter = DrafterKind::kReversed,
                   uint64_t num_seeds = kNumSeeds) {
  const ToyModel model(4, drafter);
  std::map<TokenSeq, int64_t> counts;
  for (uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::unique_ptr<RenamedCoins> coins;
    std::unique_ptr<ToyCluster> cluster;
    if (rename) {
      coins = std::make_unique<RenamedCoins>(seed, rename);
      cluster = std::make_unique<ToyCluster>(config, model, *coins);
    } else {
      cluster = std::make_unique<ToyCluster>(config, model, seed);
    }
    while (cluster->session().length() < 1 + kLength) {
      if (!cluster->Round().ok()) ADD_FAILURE() << "a round failed";
    }
    const auto text =
        cluster->session().committed().tokens().subspan(1, kLength);
    ++counts[{text.begin(), text.end()}];
  }
  std::vector<int64_t> observed;
  std::vector<double> expected;
  const Law law = PlainLaw(model, config.sampling, {kToyPrompt}, kLength, {});
  for (const auto& [text, probability] : law) {
    observed.push_back(counts[text]);
    expected.push_back(probability);
  }
  const ChiSquare result = TestCounts(observed, expected);
  std::cout << "chi-square " << result.statistic << ", critical "
            << result.critical << "\n";
  return result;
}

TEST(StatisticsTest, SeedsGiveTheTargetsJointLaw) {
  for (const int support_size : {0, 1, 2}) {
    ClusterConfig config = Config();
    config.drafting.support_size = support_size;
    const ChiSquare result = RunSeeds(config, {});
    EXPECT_LT(result.statistic, result.critical);
  }
}

TEST(StatisticsTest, SeedsGiveTheTargetsJointLawWhileDraftLengthsChange) {
  ClusterConfig config = Config();
  config.draft_lengths = {1, 0, 3};
  config.has_first_round = true;
  config.num_deliveries = 2;
  const ChiSquare result = RunSeeds(config, {});
  EXPECT_LT(result.statistic, result.critical);
}

TEST(StatisticsTest, SeedsGiveTheTargetsJointLawUnderTheCoupledRule) {
  for (const ReplyFormat format : {ReplyFormat::kFull, ReplyFormat::kTokens}) {
    ClusterConfig config = Config();
    config.rule = RuleKind::kCoupled;
    config.reply_format = format;
    const ChiSquare result = RunSeeds(config, {});
    EXPECT_LT(result.statistic, result.critical);
  }
}

TEST(StatisticsTest, SeedsGiveTheTargetsJointLawUnderBlockVerification) {
  for (const DrafterKind drafter :
       {DrafterKind::kReversed, DrafterKind::kCorrelated}) {
    ClusterConfig config = Config();
    config.rule = RuleKind::kBlock;
    config.drafting.support_size = 0;
    config.draft_lengths = {3};
    const ChiSquare result = RunSeeds(config, {}, drafter);
    EXPECT_LT(result.statistic, result.critical);
  }
}

// Coins that the round before has read after its commit point. The bias is
// small: where refused drafts are common and most tokens possible.
TEST(StatisticsTest, RejectsBlockCoinsOfAnEarlierRound) {
  ClusterConfig config = Config();
  config.rule = RuleKind::kBlock;
  config.drafting.support_size = 0;
  config.sampling.temperature = 2;
  const auto run = [&config](const RenamedCoins::Rename& rename) {
    return RunSeeds(config, rename, DrafterKind::kReversed, 3 * kNumSeeds);
  };
  const ChiSquare right = run([](const CoinKey& key) { return key; });
  EXPECT_LT(right.statistic, right.critical);
  const ChiSquare wrong = run([](const CoinKey& key) {
    if (key.purpose != Purpose::kAccept) return key;
    return CoinKey{key.purpose, key.position};
  });
  EXPECT_GT(wrong.statistic, wrong.critical);
}

// The same noise at every position.
TEST(StatisticsTest, RejectsCoupledNoiseThatForgetsThePosition) {
  ClusterConfig config = Config();
  config.rule = RuleKind::kCoupled;
  const ChiSquare result = RunSeeds(config, [](const CoinKey& key) {
    return CoinKey{key.purpose, 0, key.generation};
  });
  EXPECT_GT(result.statistic, 10 * result.critical);
}

// One coin for the draft and its acceptance.
TEST(StatisticsTest, RejectsCoinsSharedByDraftAndAcceptance) {
  const ChiSquare result = RunSeeds(Config(), [](const CoinKey& key) {
    if (key.purpose != Purpose::kAccept && key.purpose != Purpose::kDraft) {
      return key;
    }
    return CoinKey{Purpose::kDraft, key.position};
  });
  EXPECT_GT(result.statistic, 10 * result.critical);
}

// Whole rows: a residual with one possible token would hide the bias.
TEST(StatisticsTest, RejectsCoinsSharedByAcceptanceAndResidual) {
  ClusterConfig config = Config();
  config.drafting.support_size = 0;
  const ChiSquare result = RunSeeds(config, [](const CoinKey& key) {
    if (key.purpose != Purpose::kResidual) return key;
    return CoinKey{Purpose::kAccept, key.position};
  });
  EXPECT_GT(result.statistic, result.critical);
}

TEST(StatisticsTest, RejectsOneCoinForEveryPurpose) {
  const ChiSquare result = RunSeeds(Config(), [](const CoinKey& key) {
    return CoinKey{Purpose::kDraft, key.position};
  });
  EXPECT_GT(result.statistic, 10 * result.critical);
}

}  // namespace
}  // namespace outrider::testing::statistics
