// SPDX-License-Identifier: Apache-2.0
// When drafts are asked for ahead, and for how many outcomes.
#include <algorithm>

#include "coordinator/control/draft_length_control.h"
#include "coordinator/control/outcome_count.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

// One session by the schedule kAuto. In turn four drafts take 10 ms, and a
// verification takes 30. All drafts but the last one stand.
struct AheadWorld {
  double hits = 0.75;
  double late = 0;        // that what is drafted ahead comes after the verdict
  double disturbed = 0;   // that verification takes longer meanwhile
  double in_turn = 0.01;  // that drafts take so, the network included
  DraftLengthMode mode = DraftLengthMode::kFixed;
  int num_looked_up = 0;  // where the drafter is asked for nothing

  // The share of so many rounds that asked ahead.
  double Run(int num_rounds, DraftLengthControl& control) {
    int num_asked = 0;
    for (int i = 0; i < num_rounds; ++i) {
      const bool was_asked = ahead_choice.num_drafts > 0;
      const bool is_hit = was_asked && (i % 4 + 0.5) / 4 < hits;
      DraftLengthControl::Choice choice =
          is_hit ? ahead_choice : control.Choose(4, mode);
      const bool is_by_drafter = choice.num_drafts > 0;
      ahead_choice = is_by_drafter ? control.ChooseAhead(4, mode)
                                   : DraftLengthControl::Choice{};
      const bool asks = ahead_choice.num_drafts > 0;
      num_asked += asks ? 1 : 0;
      const double drafting =
          (is_hit || !is_by_drafter ? 0 : in_turn) + (was_asked ? late : 0);
      const double verifying = 0.03 + (asks ? disturbed : 0);
      AheadStats ahead;
      if (was_asked) {
        ahead = {.outcome = is_hit ? AheadStats::Outcome::kHit
                                   : AheadStats::Outcome::kMiss,
                 .num_drafted = 16,
                 .num_outcomes = 4,
                 .longest = 4,
                 .wait_seconds = late,
                 .call_seconds = 0.02,
                 .compute_seconds = 0.02};
      }
      choice.drafts_ahead = asks;
      choice.after = last_round;
      const int num_drafted = is_by_drafter ? choice.num_drafts : num_looked_up;
      last_round = control.Learn(
          choice,
          {.num_drafted = num_drafted,
           .num_accepted = std::max(0, num_drafted - 1),
           .num_looked_up = is_by_drafter ? 0 : num_looked_up,
           .ahead = ahead,
           .round_seconds = drafting + verifying,
           .drafter = {.call_seconds = drafting,
                       .compute_seconds = is_hit || !is_by_drafter ? 0 : 0.01},
           .verifier = {.call_seconds = verifying,
                        .compute_seconds = verifying}});
    }
    return static_cast<double>(num_asked) / num_rounds;
  }
  DraftLengthControl::Choice ahead_choice = {};
  int64_t last_round = 0;
};

constexpr int kFirstBlocks = 100;  // both ways have been seen

double ShareAhead(AheadWorld world) {
  DraftLengthControl control(Schedule::kAuto);
  world.Run(kFirstBlocks, control);
  return world.Run(4000, control);
}

TEST(ScheduleControlTest, AutoAsksAheadWhereTheDrafterIsBackBeforeTheVerdict) {
  EXPECT_GT(ShareAhead({}), 0.9);
}

TEST(ScheduleControlTest, AutoDoesNotWaitLongerThanHitsSave) {
  EXPECT_LT(ShareAhead({.late = 0.012}), 0.1);
  EXPECT_GT(ShareAhead({.late = 0.003}), 0.9);
}

// What loses a tenth may be tried for a tenth of the rounds.
TEST(ScheduleControlTest, AutoDoesNotWaitWithoutHitsButForATry) {
  EXPECT_LT(ShareAhead({.hits = 0, .late = 0.004}), 0.15);
}

// Both nodes on the same processors: what hits save is less than what a
// verification takes longer while the drafter works.
TEST(ScheduleControlTest, AutoSeesThatVerificationTakesLongerBesideTheDrafter) {
  EXPECT_LT(ShareAhead({.disturbed = 0.02}), 0.1);
}

TEST(ScheduleControlTest, AutoFollowsWhatChanges) {
  DraftLengthControl control(Schedule::kAuto);
  AheadWorld quick;
  quick.Run(kFirstBlocks, control);
  AheadWorld late = {.late = 0.02};
  late.Run(200, control);
  EXPECT_LT(late.Run(1000, control), 0.1);
  quick.Run(3000, control);
  EXPECT_GT(quick.Run(1000, control), 0.9);
}

// The drafter pays ahead alone: four tokens take 48 ms so, and 230 in turn.
// What is looked up gives as many in 30.
TEST(ScheduleControlTest, AutoSeesThatLookupsFillInWhereTheDrafterDoesNotPay) {
  const AheadWorld far = {
      .hits = 1, .late = 0.018, .in_turn = 0.2, .mode = DraftLengthMode::kAuto};
  EXPECT_GT(ShareAhead(far), 0.9);
  AheadWorld filled_in = far;
  filled_in.num_looked_up = 4;
  EXPECT_LT(ShareAhead(filled_in), 0.1);
}

TEST(ScheduleControlTest, DraftsAheadFromTheFirstRoundOnAreAskedForByName) {
  const DraftLengthControl control(Schedule::kPredraft);
  EXPECT_EQ(control.ChooseAhead(4, DraftLengthMode::kFixed).num_drafts, 4);
  EXPECT_GT(control.Acceptance(), 0);
  EXPECT_LT(control.Acceptance(), 1);
}

// Rounds with four drafts, which take 30 ms to draft in turn; the fewest and
// the most outcomes that there are once some have gone by.
struct OutcomeRange {
  int fewest = 100;
  int most = 0;
};
OutcomeRange OutcomesWhere(double pass_seconds, double row_seconds,
                           DraftLengthControl& control, int num_rounds = 400) {
  constexpr double kVerdict = 0.012;  // after so long
  constexpr int kNumDrafts = 4;
  OutcomeRange range;
  for (int i = 0; i < num_rounds; ++i) {
    const int count = control.NumOutcomes();
    if (i >= num_rounds / 4) {
      range.most = std::max(range.most, count);
      range.fewest = std::min(range.fewest, count);
    }
    const double compute =
        (kNumDrafts + 1) * (pass_seconds + count * row_seconds);
    const double wait = std::max(0.0, compute - kVerdict);
    control.Learn({.num_drafts = kNumDrafts, .mode = DraftLengthMode::kFixed},
                  {.num_drafted = kNumDrafts,
                   .ahead = {.outcome = AheadStats::Outcome::kMiss,
                             .num_drafted = kNumDrafts * count,
                             .num_outcomes = count,
                             .longest = kNumDrafts,
                             .wait_seconds = wait,
                             .compute_seconds = compute},
                   .round_seconds = kVerdict + wait + 0.03,
                   .drafter = {.call_seconds = 0.03 + wait}});
  }
  return range;
}
OutcomeRange OutcomesWhere(double pass_seconds, double row_seconds) {
  DraftLengthControl control;
  return OutcomesWhere(pass_seconds, row_seconds, control);
}

// 1 ms for each is more than the verifier takes from 13 on.
TEST(ScheduleControlTest, ThereAreMoreOutcomesUntilRoundsWaitForThem) {
  const OutcomeRange range = OutcomesWhere(/*pass_seconds=*/0, 0.0002);
  EXPECT_EQ(range.most, 13);
  EXPECT_GE(range.fewest, 10);
}

// Each round waits, for the passes and not for their rows. Now and then fewer
// are tried.
TEST(ScheduleControlTest, OutcomesAreNotFewerWhereThatSparesNoWait) {
  constexpr int kTried = 12;
  EXPECT_GE(OutcomesWhere(0.004, 0).fewest, kTried);
  EXPECT_EQ(OutcomesWhere(0.004, 0).most, OutcomeCount::kMost);
  EXPECT_GE(OutcomesWhere(0.004, 0.00001).fewest, kTried);
  EXPECT_LE(OutcomesWhere(0.004, 0.001).most, OutcomeCount::kFewest + 1);
}

TEST(ScheduleControlTest, OutcomesAreFewerOnceTheirRowsCostAndBack) {
  DraftLengthControl control;
  EXPECT_GE(OutcomesWhere(0.004, 0, control, 1500).fewest, 12);
  EXPECT_LE(OutcomesWhere(0.004, 0.001, control, 1500).most,
            OutcomeCount::kFewest + 1);
  EXPECT_EQ(OutcomesWhere(0.004, 0, control, 1500).most, OutcomeCount::kMost);
}

}  // namespace
}  // namespace outrider
