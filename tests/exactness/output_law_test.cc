// SPDX-License-Identifier: Apache-2.0
// The joint law of the emitted tokens, enumerated over the production round,
// against an independent plain decoder. No sampling, hence no false alarm.
#include <algorithm>
#include <string>
#include <vector>

#include "core/sampling/process.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::output_law {
namespace {

class OutputLawTest : public ::testing::Test {
 protected:
  Enumeration Check(const LawCase& law_case) { return laws_.Expect(law_case); }

 private:
  LawCoverage laws_;
};

std::vector<SamplingParams> AllSamplings(int vocab_size) {
  std::vector<SamplingParams> all = {{.temperature = 0}};
  for (const double temperature : {0.8, 1.0, 1.3}) {
    for (const int top_k : {0, vocab_size - 1}) {
      for (const double top_p : {0.7, 1.0}) {
        all.push_back(
            {.temperature = temperature, .top_k = top_k, .top_p = top_p});
      }
    }
  }
  return all;
}

TEST_F(OutputLawTest, IsTheTargetsForEveryDrafterAndSamplingSetting) {
  for (const DrafterKind drafter : kAllDrafters) {
    for (const SamplingParams& sampling : AllSamplings(4)) {
      Check({.drafter = drafter,
             .config = {.sampling = sampling, .draft_lengths = {2}},
             .length = 3});
    }
  }
}

TEST_F(OutputLawTest, IsTheTargetsForEveryDraftLengthAndSupportSize) {
  for (const int vocab_size : {3, 4, 5}) {
    for (const int support_size : {1, 2, vocab_size}) {
      for (const int k : {0, 1, 2, 3, 4}) {
        // Whole rows of five words, four deep, would be a million leaves.
        if (support_size > 2 && k + vocab_size > 6) continue;
        if (support_size == 2 && k + vocab_size > 7) continue;
        for (const int num_deliveries : {1, 2}) {
          Check({.vocab_size = vocab_size,
                 .config = {.sampling = {.top_k = vocab_size - 1},
                            .drafting = {.support_size = support_size},
                            .draft_lengths = {k},
                            .has_first_round = num_deliveries == 2,
                            .num_deliveries = num_deliveries},
                 .length = k + 2});
        }
      }
    }
  }
}

TEST_F(OutputLawTest, IsTheTargetsOverTwoBlocksAndMore) {
  for (const DrafterKind drafter :
       {DrafterKind::kCorrelated, DrafterKind::kReversed}) {
    for (const int k : {1, 2}) {
      Check({.vocab_size = 3,
             .drafter = drafter,
             .config = {.sampling = {.temperature = 1.3}, .draft_lengths = {k}},
             .length = 2 * k + 2});
    }
    Check({.vocab_size = 3,
           .drafter = drafter,
           .config = {.sampling = {.temperature = 0.8, .top_k = 2},
                      .drafting = {.support_size = 2},
                      .draft_lengths = {3},
                      .has_first_round = true},
           .length = 8});
  }
}

// A cache that is cut one too late, or never, survives every constant K.
TEST_F(OutputLawTest, IsTheTargetsWhereDraftLengthsChangeByRound) {
  const std::vector<std::vector<int>> scripts = {
      {0, 2}, {2, 0}, {3, 0, 1}, {1, 3, 0, 2}, {0, 0, 3}, {2, 1, 0, 0, 1}};
  for (const std::vector<int>& script : scripts) {
    for (const int support_size : {1, 2, 3}) {
      for (const int num_deliveries : {1, 2}) {
        Check({.vocab_size = 3,
               .config = {.sampling = {.temperature = 0.8},
                          .drafting = {.support_size = support_size},
                          .draft_lengths = script,
                          .has_first_round = num_deliveries == 2,
                          .num_deliveries = num_deliveries},
               .length = 5});
      }
    }
  }
}

// That texts merge which took another number of rounds is a shortcut of the
// enumeration: with a mistake in place, even one that does nothing, it goes
// without.
TEST(EnumerationTest, MergesOnlyStatesThatGoOnAlike) {
  for (const std::vector<int>& script :
       std::vector<std::vector<int>>{{1}, {2}, {2, 0, 1}}) {
    ClusterConfig config = {.draft_lengths = script, .has_first_round = true};
    const ToyModel model(3, DrafterKind::kCorrelated);
    const Enumeration merged = Enumerate(config, model, /*length=*/5);
    config.sabotage.alter_draft = [](Draft&) {};
    const Enumeration apart = Enumerate(config, model, /*length=*/5);
    EXPECT_LE(merged.num_leaves, apart.num_leaves);
    EXPECT_EQ(merged.num_leaves < apart.num_leaves, script.size() == 1);
    EXPECT_LE(Compare(merged.law, apart.law).max_difference, kTolerance);
    EXPECT_NEAR(merged.expected_drafted, apart.expected_drafted, kTolerance);
    EXPECT_NEAR(merged.expected_accepted, apart.expected_accepted, kTolerance);
  }
}

TEST_F(OutputLawTest, IsTheTargetsWhereEveryCallArrivesTwice) {
  for (const DrafterKind drafter : kAllDrafters) {
    for (const std::vector<int>& script :
         std::vector<std::vector<int>>{{2}, {3, 0, 1}}) {
      Check({.drafter = drafter,
             .config = {.draft_lengths = script,
                        .has_first_round = true,
                        .num_deliveries = 2},
             .length = 4});
    }
  }
}

// The law is the same, whoever judges, and whatever it sees. A SPARSE row's
// drawn token is drawn whether or not it will be read, with the uniform number
// that the position's next row sees again.
class ReplyFormatTest : public OutputLawTest,
                        public ::testing::WithParamInterface<ReplyFormat> {
 protected:
  void CheckFormat(LawCase c) {
    c.config.reply_format = GetParam();
    if (GetParam() == ReplyFormat::kSparse) {
      c.config.reuse = EnumeratingSource::Reuse::kShareUniform;
    }
    Check(c);
  }
};

TEST_P(ReplyFormatTest, HoldsForEveryDrafterAndSamplingSetting) {
  for (const DrafterKind drafter : kAllDrafters) {
    for (const SamplingParams& sampling :
         {SamplingParams{.temperature = 0}, SamplingParams{.temperature = 1.3},
          SamplingParams{.temperature = 0.8, .top_k = 3},
          SamplingParams{.top_p = 0.7}}) {
      CheckFormat(
          {.drafter = drafter,
           .config = {.sampling = sampling,
                      .drafting = {.support_size = 2, .round_weights = true},
                      .draft_lengths = {2},
                      .has_first_round = true},
           .length = 3});
    }
  }
}

TEST_P(ReplyFormatTest, HoldsForEveryDraftLengthAndSupportSize) {
  for (const int support_size : {1, 2, 3}) {
    for (const std::vector<int>& script :
         std::vector<std::vector<int>>{{0}, {1}, {3}, {2, 0, 1}, {0, 2}}) {
      // Tails that are drawn before they are read make many leaves. Three
      // drafts from rows that are cut: up to the end, below.
      if (script.front() > 4 - support_size) continue;
      CheckFormat({.vocab_size = 3,
                   .config = {.sampling = {.temperature = 0.8},
                              .drafting = {.support_size = support_size},
                              .draft_lengths = script,
                              .has_first_round = true,
                              .num_deliveries = 2},
                   .length = 4});
    }
  }
}

TEST_P(ReplyFormatTest, HoldsUpToTheEnd) {
  CheckFormat({.vocab_size = 3,
               .config = {.drafting = {.support_size = 2},
                          .draft_lengths = {3},
                          .max_length = 1 + 4},
               .length = 4});
  for (const TokenId eos : {0, 2}) {
    CheckFormat({.vocab_size = 3,
                 .config = {.drafting = {.support_size = 2},
                            .draft_lengths = {2},
                            .eos_ids = {eos}},
                 .length = 4});
  }
}

TEST_P(ReplyFormatTest, HoldsForOneHotDrafts) {
  CheckFormat({.vocab_size = 3,
               .config = {.sampling = {.temperature = 1},
                          .draft_lengths = {2},
                          .has_first_round = true,
                          .ngrams = NgramStrategy::Options{.max_match = 3,
                                                           .min_match = 1}},
               .length = 5});
}

// Reversed drafts, and K that changes: rows whose lengths differ from round to
// round and with the drafts before them.
TEST_P(ReplyFormatTest, HoldsWhereMassesAndDraftLengthsChange) {
  for (const double mass : {0.3, 0.75}) {
    for (const bool round_weights : {false, true}) {
      CheckFormat({.vocab_size = 3,
                   .drafter = DrafterKind::kReversed,
                   .config = {.sampling = {.temperature = 1.3},
                              .drafting = {.support_size = 3,
                                           .support_mass = mass,
                                           .round_weights = round_weights},
                              .draft_lengths = {2, 0, 1}},
                   .length = 4});
    }
  }
}

TEST_P(ReplyFormatTest, HoldsWhereRowsAreCutByTheirMass) {
  for (const double mass : {0.3, 0.6, 0.9}) {
    CheckFormat({.config = {.drafting = {.support_size = 3,
                                         .support_mass = mass,
                                         .round_weights = true},
                            .draft_lengths = {2},
                            .has_first_round = true},
                 .length = 4});
  }
}

TEST_P(ReplyFormatTest, HoldsForLookupsInFrontOfADrafter) {
  CheckFormat({.vocab_size = 3,
               .config = {.sampling = {.temperature = 1},
                          .drafting = {.support_size = 2},
                          .draft_lengths = {2},
                          .has_first_round = true,
                          .prompt_lookup = true},
               .length = 5});
}

INSTANTIATE_TEST_SUITE_P(Formats, ReplyFormatTest,
                         ::testing::Values(ReplyFormat::kSparse,
                                           ReplyFormat::kTokens),
                         [](const auto& parameter) {
                           return parameter.param == ReplyFormat::kSparse
                                      ? "Sparse"
                                      : "Tokens";
                         });

// Rows that are rounded for the wire are the target's rows: the law is plain
// decoding's from rounded logits, and another one than from whole ones.
TEST_F(OutputLawTest, IsThatOfRoundedLogitsWhereTheyTravelInBFloat16) {
  const ToyModel model(4, DrafterKind::kCorrelated);
  const ToyModel rounded(4, DrafterKind::kCorrelated,
                         /*target_is_rounded=*/true);
  for (const std::vector<int>& script :
       std::vector<std::vector<int>>{{0}, {3}, {2, 0, 1}}) {
    const ClusterConfig config = {.drafting = {.support_size = 2},
                                  .reply_format = ReplyFormat::kFullBFloat16,
                                  .draft_lengths = script};
    const Law law = Enumerate(config, model, 5).law;
    const auto plain = [&](const ToyModel& target) {
      return PlainLaw(target, config.sampling, {kToyPrompt}, 5, {});
    };
    EXPECT_LE(Compare(law, plain(rounded)).max_difference, kTolerance);
    EXPECT_GT(Compare(law, plain(model)).total_variation, 1e-4);
  }
}

// How many are drafted depends on the rows that were drafted from.
TEST_F(OutputLawTest, IsTheTargetsWhereAnUnsureDrafterStopsEarly) {
  for (const DrafterKind drafter : kAllDrafters) {
    for (const double min_probability : {0.3, 0.6}) {
      for (const int support_size : {2, 4}) {
        Check(
            {.drafter = drafter,
             .config = {.drafting = {.support_size = support_size,
                                     .min_draft_probability = min_probability},
                        .draft_lengths = {3},
                        .num_deliveries = 2},
             .length = 3});
      }
    }
  }
}

// What is drafted depends on the committed text alone, and q(x) = 1.
TEST_F(OutputLawTest, IsTheTargetsWhereTheTextItselfDrafts) {
  for (const int k : {1, 2, 4}) {
    const Enumeration result =
        Check({.vocab_size = 3,
               .config = {.sampling = {.temperature = 1},
                          .draft_lengths = {k},
                          .has_first_round = true,
                          .num_deliveries = 2,
                          .ngrams = NgramStrategy::Options{.max_match = 3,
                                                           .min_match = 1}},
               .length = 6});
    EXPECT_GT(result.expected_drafted, 0.5);
    EXPECT_GT(result.expected_accepted, 0.1);
  }
}

// Lookups and the drafter take turns, by what was accepted so far.
TEST_F(OutputLawTest, IsTheTargetsWhereTheTextDraftsBesideADrafter) {
  for (const DrafterKind drafter : kAllDrafters) {
    for (const std::vector<int>& script :
         std::vector<std::vector<int>>{{1}, {2}, {3, 0, 1}}) {
      const Enumeration result =
          Check({.vocab_size = 3,
                 .drafter = drafter,
                 .config = {.sampling = {.temperature = 1.3},
                            .drafting = {.support_size = 2},
                            .draft_lengths = script,
                            .has_first_round = true,
                            .num_deliveries = 2,
                            .prompt_lookup = true},
                 .length = 6});
      EXPECT_GT(result.expected_accepted, 0.1);
    }
  }
}

TEST_F(OutputLawTest, EndsAtTheFirstEndTokenOfABlock) {
  for (const std::vector<TokenId>& eos_ids :
       std::vector<std::vector<TokenId>>{{0}, {3}, {1, 3}}) {
    for (const int k : {1, 2, 3}) {
      Check({.config = {.drafting = {.support_size = 2},
                        .draft_lengths = {k},
                        .has_first_round = true,
                        .eos_ids = eos_ids},
             .length = 5});
    }
  }
}

// K is cut near the end of the session, down to a plain last round.
TEST_F(OutputLawTest, IsTheTargetsUpToTheSessionsLastToken) {
  for (const int k : {1, 2, 3}) {
    for (const int length : {1, 2, 4, 5}) {
      Check({.config = {.drafting = {.support_size = 2},
                        .draft_lengths = {k},
                        .has_first_round = true,
                        .max_length = 1 + length},
             .length = length});
    }
  }
}

TEST_F(OutputLawTest, IsOneTextWhereTheTemperatureIsZero) {
  for (const DrafterKind drafter : kAllDrafters) {
    const Enumeration result = Check({.vocab_size = 5,
                                      .drafter = drafter,
                                      .config = {.sampling = {.temperature = 0},
                                                 .draft_lengths = {4, 0, 2},
                                                 .has_first_round = true},
                                      .length = 16});
    ASSERT_EQ(result.law.size(), 1u);
    EXPECT_EQ(result.law.begin()->second, 1.0);
  }
}

// The other half of the promise: drafts are accepted as often as any coupling
// of p and q allows, which is the sum of min(p, q).
TEST_F(OutputLawTest, AcceptsAsOftenAsTheTwoRowsOverlap) {
  for (const DrafterKind drafter : kAllDrafters) {
    const SamplingParams sampling = {.temperature = 1.3};
    const Enumeration result =
        Check({.drafter = drafter,
               .config = {.sampling = sampling, .draft_lengths = {1}},
               .length = 1});
    const ToyModel model(4, drafter);
    const auto p = Process(model.Target({kToyPrompt}), sampling, {});
    const auto q = Process(model.Drafter({kToyPrompt}), sampling, {});
    double overlap = 0;
    for (TokenId id = 0; id < 4; ++id) overlap += std::min((*p)(id), (*q)(id));
    EXPECT_NEAR(result.expected_accepted, overlap, kTolerance);
  }
}

}  // namespace
}  // namespace outrider::testing::output_law
