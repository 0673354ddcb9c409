// SPDX-License-Identifier: Apache-2.0
// Mistakes in drafting ahead of the verdict, each of which must be caught: by
// the law, or by a gate beside it where the law stands. Built with
// OUTRIDER_MUTANTS.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "core/sampling/cut.h"
#include "core/sampling/process.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"
#include "tests/exactness/sabotage.h"
#include "tests/exactness/scoped_mutant.h"

namespace outrider::testing::schedule_mutants {
namespace {

constexpr int kLength = 5;
constexpr int kSupportSize = 2;
const SamplingParams kSampling = {.temperature = 0.8};

const ToyModel& ThreeWords() {
  static const ToyModel model(3, DrafterKind::kCorrelated);
  return model;
}

ClusterConfig Config(Schedule schedule = Schedule::kPredraft) {
  return {.sampling = kSampling,
          .drafting = {.support_size = kSupportSize},
          .draft_lengths = {1},
          .has_first_round = true,
          .schedule = schedule,
          .max_outcomes = 2};
}

Enumeration EnumerateSchedule(Mutant mutant, const ClusterConfig& config) {
  const ScopedMutant scoped(mutant);
  return Enumerate(config, ThreeWords(), kLength);
}
Enumeration EnumerateSchedule(Mutant mutant, Sabotage sabotage = {},
                              Schedule schedule = Schedule::kPredraft) {
  ClusterConfig config = Config(schedule);
  config.sabotage = std::move(sabotage);
  return EnumerateSchedule(mutant, config);
}

Difference FromPlain(const Enumeration& result) {
  return Compare(result.law,
                 PlainLaw(ThreeWords(), kSampling, {kToyPrompt}, kLength, {}));
}

// The drafter's row after the text, as it is drawn from.
Distribution RowAfter(absl::Span<const TokenId> committed) {
  return KeepTop(*Process(ThreeWords().Drafter(committed), kSampling, {}),
                 kSupportSize)
      .Normalized();
}

// Counts the drafts that are not from the drafter's row after the session's
// text.
Sabotage CountingStrangers(int& num_strangers) {
  return WithRule({.draft_probability =
                       [&num_strangers](const DenseView& view, int i) {
                         const Distribution& q = view.draft.distributions[i];
                         const Distribution own = RowAfter(view.committed);
                         for (TokenId v = 0; v < view.vocab_size; ++v) {
                           if (std::abs(q(v) - own(v)) < 1e-6) continue;
                           ++num_strangers;
                           break;
                         }
                         return q(view.draft.tokens[i]);
                       }},
                  kSampling);
}

TEST(ScheduleMutantsTest, NoMutantIsExact) {
  int num_strangers = 0;
  for (const Schedule schedule : {Schedule::kAhead, Schedule::kPredraft}) {
    const Enumeration result = EnumerateSchedule(
        Mutant::kNone, CountingStrangers(num_strangers), schedule);
    EXPECT_LE(FromPlain(result).max_difference, kTolerance);
    EXPECT_EQ(result.num_misses, 0);
    EXPECT_EQ(result.problem, "");
    EXPECT_GT(result.expected_hits, 0.1);
  }
  EXPECT_EQ(num_strangers, 0);
}

// The law stands, as the draft was drawn from the row that comes with it: what
// it costs is acceptance.
TEST(ScheduleMutantsTest, ADraftForAnotherNextTokenIsCaughtByItsRow) {
  int num_strangers = 0;
  const Enumeration result =
      EnumerateSchedule(Mutant::kH1, CountingStrangers(num_strangers));
  EXPECT_GT(num_strangers, 0);
  EXPECT_LE(FromPlain(result).max_difference, kTolerance);
}

TEST(ScheduleMutantsTest, CoinsOfAnotherPlaceAreFlippedTwice) {
  const Enumeration result = EnumerateSchedule(
      Mutant::kNone, {.alter_hit = [](Draft& draft) { ++draft.start; }});
  EXPECT_NE(result.problem, "");
}

TEST(ScheduleMutantsTest, StepsThatAreNotReservedFlipACoinTwice) {
  ClusterConfig config = Config();
  config.max_outcomes = 4;
  EXPECT_NE(EnumerateSchedule(Mutant::kH2, config).problem, "");
}

// A header keeps all but the last token at most, so the very next one would be
// right. After a plain round, the drafter notices by the hash of what it keeps.
TEST(ScheduleMutantsTest, EntriesOfRefusedDraftsInFlightAreMissed) {
  ClusterConfig config = Config(Schedule::kAhead);
  config.draft_lengths = {2, 0};
  EXPECT_EQ(EnumerateSchedule(Mutant::kNone, config).num_misses, 0);
  EXPECT_GT(EnumerateSchedule(Mutant::kH3, config).num_misses, 0);
}

// A call ahead that is given up may have cut the drafter's cache already: what
// it had drafted in flight is gone from there, and must be sent again.
TEST(ScheduleMutantsTest, EntriesOfACallThatWasCancelledAreMissed) {
  for (const Schedule schedule : {Schedule::kAhead, Schedule::kPredraft}) {
    ClusterConfig config = Config(schedule);
    config.draft_lengths = {2};
    config.sabotage.is_draft_cancelled = [](const DraftCall& call) {
      return call.max_outcomes > 0;
    };
    const Enumeration right = EnumerateSchedule(Mutant::kNone, config);
    EXPECT_LE(FromPlain(right).max_difference, kTolerance);
    EXPECT_EQ(right.num_misses, 0);
    EXPECT_EQ(right.problem, "");
    EXPECT_EQ(right.expected_hits, 0);
    // Misses heal it, so that the law stands.
    const Enumeration wrong = EnumerateSchedule(Mutant::kH4, config);
    EXPECT_GT(wrong.num_misses, 0);
    EXPECT_LE(FromPlain(wrong).max_difference, kTolerance);
  }
}

// The target's own token after full acceptance is the one that was guessed
// wherever that is possible.
TEST(ScheduleMutantsTest, AGuessOfTheBonusTokenMustNotReachTheRule) {
  const auto guess = [](const DenseView& view) {
    TokenSeq text(view.committed.begin(), view.committed.end());
    text.insert(text.end(), view.draft.tokens.begin(), view.draft.tokens.end());
    const std::vector<float> logits = ThreeWords().Drafter(text);
    const auto best =
        std::max_element(logits.begin(), logits.end()) - logits.begin();
    std::vector<double> weights = Dense(view.p.back(), view.vocab_size);
    for (TokenId v = 0; v < view.vocab_size; ++v) {
      if (v != best && weights[best] > 0) weights[v] = 0;
    }
    return weights;
  };
  const Difference difference = FromPlain(EnumerateSchedule(
      Mutant::kNone, WithRule({.bonus = guess}, kSampling), Schedule::kAhead));
  std::cout << "joint TV " << difference.total_variation << "\n";
  EXPECT_GT(difference.total_variation, 1e-2);
}

// Stands for a limit on time: how long drafts take depends on their tokens.
TEST(ScheduleMutantsTest, HitsMustNotBeDroppedForTheirTokens) {
  const auto drop = [](Draft& draft) {
    if (draft.length() > 0 && draft.tokens[0] == 0) {
      draft = {.start = draft.start};
    }
  };
  const Difference difference =
      FromPlain(EnumerateSchedule(Mutant::kNone, {.alter_hit = drop}));
  std::cout << "joint TV " << difference.total_variation << "\n";
  EXPECT_GT(difference.total_variation, 1e-3);
}

}  // namespace
}  // namespace outrider::testing::schedule_mutants
