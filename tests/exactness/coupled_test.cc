// SPDX-License-Identifier: Apache-2.0
// Under the coupled rule the output is a function of the seed and the target:
// token for token that of plain decoding, whatever drafts and replies.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/sampling/coins.h"
#include "core/sampling/process.h"
#include "gtest/gtest.h"
#include "tests/exactness/toy_cluster.h"

namespace outrider::testing::coupled {
namespace {

constexpr int kVocab = 5;
constexpr int kLength = 120;
constexpr uint64_t kSeeds[] = {1, 20261121, ~uint64_t{0}};

const std::vector<std::vector<int>>& Scripts() {
  static const std::vector<std::vector<int>> scripts = {
      {0}, {1}, {3}, {5}, {8}, {3, 0, 8, 1, 0, 5}};
  return scripts;
}

ClusterConfig Config() {
  return {.sampling = {.temperature = 1.1, .top_p = 0.95},
          .rule = RuleKind::kCoupled,
          .drafting = {.support_size = 3, .round_weights = true},
          .has_first_round = true,
          .max_length = 1 + kLength};
}

// A race of its own, over the processed rows and production's noise.
TokenSeq PlainText(const ToyModel& model, const SamplingParams& sampling,
                   uint64_t seed) {
  const Coins coins(seed);
  TokenSeq text = {kToyPrompt};
  while (text.size() < 1 + kLength) {
    const Distribution row = *Process(model.Target(text), sampling,
                                      {.committed = text, .prompt_length = 1});
    TokenId winner = -1;
    double best = 0;
    for (const TokenId v : row.support()) {
      const double time = -std::log(coins.OpenUniform(text.size(), v)) / row(v);
      if (winner < 0 || time < best) {
        winner = v;
        best = time;
      }
    }
    text.push_back(winner);
  }
  return text;
}

struct Decoded {
  TokenSeq text = {};
  int num_drafted = 0;
  int num_accepted = 0;
  int num_hits = 0;  // rounds whose drafts were made ahead
};

Decoded Decode(const ClusterConfig& config, const ToyModel& model,
               uint64_t seed, int restart_after_round = -1) {
  ToyCluster cluster(config, model, seed);
  Decoded run;
  while (!cluster.session().is_complete()) {
    if (cluster.num_rounds() == restart_after_round) cluster.RestartDrafter();
    const auto verdict = cluster.Round();
    if (!verdict.ok()) {
      ADD_FAILURE() << verdict.status();
      return run;
    }
    run.num_drafted += cluster.stats().num_drafted;
    run.num_accepted += verdict->num_accepted;
    if (cluster.stats().ahead.outcome == AheadStats::Outcome::kHit) {
      ++run.num_hits;
    }
  }
  const auto tokens = cluster.session().committed().tokens();
  run.text.assign(tokens.begin(), tokens.end());
  return run;
}

class CoupledTest : public ::testing::TestWithParam<ReplyFormat> {};

TEST_P(CoupledTest, IsPlainDecodingWhateverDraftsAndHowMany) {
  for (const DrafterKind drafter :
       {DrafterKind::kCorrelated, DrafterKind::kReversed, DrafterKind::kUniform,
        DrafterKind::kOneHot, DrafterKind::kSame}) {
    const ToyModel model(kVocab, drafter);
    for (const uint64_t seed : kSeeds) {
      const TokenSeq plain = PlainText(model, Config().sampling, seed);
      for (const std::vector<int>& script : Scripts()) {
        for (const int num_deliveries : {1, 2}) {
          SCOPED_TRACE(absl::StrCat("drafter ", static_cast<int>(drafter),
                                    ", seed ", seed, ", K ",
                                    absl::StrJoin(script, "/")));
          ClusterConfig config = Config();
          config.reply_format = GetParam();
          config.draft_lengths = script;
          config.num_deliveries = num_deliveries;
          EXPECT_EQ(Decode(config, model, seed).text, plain);
        }
      }
    }
  }
}

TEST_P(CoupledTest, IsPlainDecodingWhereTheTextItselfDrafts) {
  const ToyModel model(kVocab, DrafterKind::kCorrelated);
  for (const uint64_t seed : kSeeds) {
    for (const std::vector<int>& script : Scripts()) {
      ClusterConfig config = Config();
      config.reply_format = GetParam();
      config.draft_lengths = script;
      config.ngrams = NgramStrategy::Options{.max_match = 3, .min_match = 1};
      EXPECT_EQ(Decode(config, model, seed).text,
                PlainText(model, config.sampling, seed));
    }
  }
}

TEST_P(CoupledTest, IsPlainDecodingAcrossARestartOfTheDrafter) {
  const ToyModel model(kVocab, DrafterKind::kCorrelated);
  for (const uint64_t seed : kSeeds) {
    for (const int round : {1, 2, 7, 15}) {
      ClusterConfig config = Config();
      config.reply_format = GetParam();
      EXPECT_EQ(Decode(config, model, seed, round).text,
                PlainText(model, config.sampling, seed));
    }
  }
}

TEST_P(CoupledTest, IsPlainDecodingWhereDraftsAreMadeAhead) {
  const ToyModel model(kVocab, DrafterKind::kCorrelated);
  for (const uint64_t seed : kSeeds) {
    for (const Schedule schedule : {Schedule::kAhead, Schedule::kPredraft}) {
      for (const int restarted_after : {-1, 7}) {
        ClusterConfig config = Config();
        config.reply_format = GetParam();
        config.schedule = schedule;
        config.max_outcomes = 4;
        const Decoded run = Decode(config, model, seed, restarted_after);
        EXPECT_EQ(run.text, PlainText(model, config.sampling, seed));
        EXPECT_GT(run.num_hits, 0);
      }
    }
  }
}

TEST_P(CoupledTest, IsGreedyDecodingWhereTheTemperatureIsZero) {
  const ToyModel model(kVocab, DrafterKind::kCorrelated);
  ClusterConfig greedy = Config();
  greedy.rule = RuleKind::kRejection;
  greedy.sampling = {.temperature = 0};
  ClusterConfig coupled = greedy;
  coupled.rule = RuleKind::kCoupled;
  coupled.reply_format = GetParam();
  EXPECT_EQ(Decode(coupled, model, 1).text, Decode(greedy, model, 2).text);
}

// The acceptance oracle: one row and one noise on both sides.
TEST_P(CoupledTest, ADrafterThatIsTheTargetIsAlwaysRight) {
  const ToyModel model(kVocab, DrafterKind::kSame);
  ClusterConfig config = Config();
  config.reply_format = GetParam();
  config.drafting.support_size = kVocab;
  config.drafting.round_weights = false;
  const Decoded run = Decode(config, model, 1);
  EXPECT_GT(run.num_drafted, kLength / 2);
  EXPECT_EQ(run.num_accepted, run.num_drafted);
}

INSTANTIATE_TEST_SUITE_P(Formats, CoupledTest,
                         ::testing::Values(ReplyFormat::kFull,
                                           ReplyFormat::kTokens),
                         [](const auto& parameter) {
                           return parameter.param == ReplyFormat::kFull
                                      ? "Full"
                                      : "Tokens";
                         });

// Noise shared with the drafter but judged by the ratio rule would be biased;
// a format that needs the ratio rule is refused.
TEST(CoupledSparseTest, IsRefused) {
  const ToyModel model(kVocab, DrafterKind::kCorrelated);
  ClusterConfig config = Config();
  config.reply_format = ReplyFormat::kSparse;
  ToyCluster cluster(config, model, uint64_t{1});
  EXPECT_EQ(cluster.Round().status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CoupledSeedTest, AnotherSeedGivesAnotherText) {
  const ToyModel model(kVocab, DrafterKind::kCorrelated);
  EXPECT_NE(Decode(Config(), model, 1).text, Decode(Config(), model, 2).text);
}

}  // namespace
}  // namespace outrider::testing::coupled
