// SPDX-License-Identifier: Apache-2.0
// Block verification over the production round: the joint law of several
// rounds is the target's in every reply format, and no fewer drafts stand than
// under rejection.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::block_verification_law {
namespace {

class BlockLawTest : public ::testing::TestWithParam<ReplyFormat> {
 protected:
  void Check(LawCase c) {
    c.config.rule = RuleKind::kBlock;
    c.config.reply_format = GetParam();
    if (GetParam() == ReplyFormat::kSparse) {
      // A row's tail is drawn whether or not it will be read: many leaves.
      for (int& k : c.config.draft_lengths) k = std::min(k, 2);
      c.length = std::min(c.length, c.vocab_size > 3 ? 3 : 4);
      c.config.reuse = EnumeratingSource::Reuse::kShareUniform;
    }
    laws_.Expect(c);
  }

 private:
  LawCoverage laws_;
};

TEST_P(BlockLawTest, IsTheTargetsForEveryDrafterAndTemperature) {
  for (const DrafterKind drafter : kAllDrafters) {
    for (const SamplingParams& sampling :
         {SamplingParams{.temperature = 0}, SamplingParams{.temperature = 1.3},
          SamplingParams{.temperature = 0.8, .top_k = 3},
          SamplingParams{.top_p = 0.7}}) {
      Check({.drafter = drafter,
             .config = {.sampling = sampling,
                        .drafting = {.support_size = 2, .round_weights = true},
                        .draft_lengths = {2},
                        .has_first_round = true}});
    }
  }
}

TEST_P(BlockLawTest, IsTheTargetsForEveryDraftLengthAndSupportSize) {
  for (const int support_size : {1, 2, 3}) {
    for (const std::vector<int>& script : std::vector<std::vector<int>>{
             {0}, {1}, {3}, {4}, {2, 0, 1}, {0, 2}, {1, 3}}) {
      if (support_size == 3 && script.back() >= 3) continue;
      if (support_size == 2 && script.front() == 4) continue;
      Check({.vocab_size = 3,
             .config = {.sampling = {.temperature = 0.8},
                        .drafting = {.support_size = support_size},
                        .draft_lengths = script},
             .length = script.front() == 4 ? 6 : 5});
    }
  }
}

// The second round judges positions that the first has looked at.
TEST_P(BlockLawTest, IsTheTargetsOverTwoBlocksAndMore) {
  for (const DrafterKind drafter :
       {DrafterKind::kCorrelated, DrafterKind::kReversed}) {
    Check({.vocab_size = 3,
           .drafter = drafter,
           .config = {.sampling = {.temperature = 1.3},
                      .drafting = {.support_size = 2},
                      .draft_lengths = {2}},
           .length = 6});
  }
}

// Whether there is one more draft depends on those before it.
TEST_P(BlockLawTest, IsTheTargetsWhereAnUnsureDrafterStopsEarly) {
  for (const DrafterKind drafter : kAllDrafters) {
    for (const double min_probability : {0.3, 0.6}) {
      Check({.drafter = drafter,
             .config = {.drafting = {.support_size = 2,
                                     .min_draft_probability = min_probability},
                        .draft_lengths = {3},
                        .has_first_round = true,
                        .num_deliveries = 2}});
    }
  }
}

TEST_P(BlockLawTest, IsTheTargetsUpToTheEnd) {
  Check({.config = {.drafting = {.support_size = 2},
                    .draft_lengths = {4},
                    .max_length = 6},
         .length = 5});
  for (const TokenId eos : {0, 3}) {
    Check({.config = {.drafting = {.support_size = 2},
                      .draft_lengths = {3},
                      .eos_ids = {eos}},
           .length = 4});
  }
}

TEST_P(BlockLawTest, IsTheTargetsWhereTheTextDraftsBesideADrafter) {
  Check({.vocab_size = 3,
         .config = {.sampling = {.temperature = 1.3},
                    .drafting = {.support_size = 2},
                    .draft_lengths = {3, 0, 1},
                    .has_first_round = true,
                    .prompt_lookup = true},
         .length = 6});
}

TEST_P(BlockLawTest, IsTheTargetsWithPenaltiesAndBias) {
  Check({.config = {.sampling = {.temperature = 0.8,
                                 .top_k = 3,
                                 .repetition_penalty = 1.4,
                                 .frequency_penalty = 0.3,
                                 .logit_bias = {{0, -0.5}}},
                    .drafting = {.support_size = 2},
                    .draft_lengths = {3, 1}},
         .length = 5});
}

INSTANTIATE_TEST_SUITE_P(Formats, BlockLawTest,
                         ::testing::Values(ReplyFormat::kFull,
                                           ReplyFormat::kSparse,
                                           ReplyFormat::kTokens),
                         [](const auto& parameter) -> std::string {
                           switch (parameter.param) {
                             case ReplyFormat::kSparse:
                               return "Sparse";
                             case ReplyFormat::kTokens:
                               return "Tokens";
                             default:
                               return "Full";
                           }
                         });

// One round, so that the two rules are compared from the same place.
TEST(BlockAcceptanceTest, NoFewerDraftsStandThanUnderRejection) {
  for (const DrafterKind drafter : kAllDrafters) {
    const ToyModel model(4, drafter);
    for (const int k : {1, 2, 3, 4}) {
      ClusterConfig config = {.sampling = {.temperature = 1.3},
                              .drafting = {.support_size = 2},
                              .draft_lengths = {k}};
      const double one_by_one = Enumerate(config, model, 1).expected_accepted;
      config.rule = RuleKind::kBlock;
      const double block = Enumerate(config, model, 1).expected_accepted;
      std::cout << "drafter " << static_cast<int>(drafter) << ", K " << k
                << ": " << one_by_one << " drafts stand, " << block
                << " under block verification\n";
      EXPECT_GE(block, one_by_one - kTolerance);
      if (k == 1) {
        EXPECT_NEAR(block, one_by_one, kTolerance);
      } else if (drafter == DrafterKind::kUniform) {
        EXPECT_GT(block, one_by_one);
      }
    }
  }
}

}  // namespace
}  // namespace outrider::testing::block_verification_law
