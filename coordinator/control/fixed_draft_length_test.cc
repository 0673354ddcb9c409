// SPDX-License-Identifier: Apache-2.0
// DraftLengthControl where the request names a number of drafts.
#include "coordinator/control/draft_length_control.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

// A busy machine has such moments.
TEST(FixedDraftLengthTest, OutlastsADraftThatStalled) {
  DraftLengthControl control;
  for (int i = 0; i < 100; ++i) {
    const auto choice = control.Choose(4, DraftLengthMode::kFixed);
    ASSERT_EQ(choice.num_drafts, 4);
    const double drafting = i == 0 ? 0.1 : 0.002;
    control.Learn(choice, {.num_drafted = 4,
                           .num_accepted = 2,
                           .round_seconds = 0.003 + drafting,
                           .drafter = {.call_seconds = drafting},
                           .verifier = {.call_seconds = 0.003,
                                        .compute_seconds = 0.003}});
  }
}

// Its first drafts take as long as a page that is read from a disk, or a
// machine that begins many programs at once.
TEST(FixedDraftLengthTest, ComesBackSecondsAfterADrafterStumbled) {
  DraftLengthControl control;
  double seconds = 0;
  int num_asked_last = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto choice = control.Choose(1, DraftLengthMode::kFixed);
    const int k = choice.num_drafts;
    const double drafting = k == 0 ? 0 : i < 2 ? 0.2 : 0.002;
    control.Learn(
        choice, {.num_drafted = k,
                 .num_accepted = k,
                 .round_seconds = 0.01 + drafting,
                 .drafter = {.call_seconds = drafting},
                 .verifier = {.call_seconds = 0.01, .compute_seconds = 0.01}});
    if (seconds > 12) num_asked_last += k;
    seconds += 0.01 + drafting;
  }
  // 8 of its 20 seconds.
  EXPECT_GE(num_asked_last, 600);
}

// Plain rounds would have eight passes a call there, and be faster; but nothing
// hangs, and who names a number is to have it.
TEST(FixedDraftLengthTest, StaysWhereTheNetworkIsFar) {
  constexpr double kRoundTrip = 0.05;
  constexpr double kPass = 0.002;
  DraftLengthControl control;
  for (int i = 0; i < 200; ++i) {
    const auto choice = control.Choose(4, DraftLengthMode::kFixed);
    ASSERT_EQ(choice.num_drafts, 4);
    control.Learn(choice, {.num_drafted = 4,
                           .num_accepted = 2,
                           .next_run = 8,
                           .round_seconds = 2 * (kRoundTrip + kPass),
                           .drafter = {.call_seconds = kRoundTrip + kPass,
                                       .compute_seconds = kPass},
                           .verifier = {.call_seconds = kRoundTrip + kPass,
                                        .compute_seconds = kPass}});
  }
}

// A drafter that hangs, and then does not.
TEST(FixedDraftLengthTest, EndsAtADrafterThatHangsAndIsTriedAgain) {
  DraftLengthControl control;
  int num_asked = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto choice = control.Choose(4, DraftLengthMode::kFixed);
    const int k = choice.num_drafts;
    ASSERT_TRUE(k == 0 || k == 4);
    num_asked += k == 4 ? 1 : 0;
    const double drafting = k == 0 ? 0 : 2;
    control.Learn(choice, {.num_drafted = k,
                           .num_accepted = k,
                           .round_seconds = 0.025 + drafting,
                           .drafter = {.call_seconds = drafting},
                           .verifier = {.call_seconds = 0.025,
                                        .compute_seconds = 0.025}});
  }
  EXPECT_GE(num_asked, 2);
  EXPECT_LE(num_asked, 10);
}

}  // namespace
}  // namespace outrider
