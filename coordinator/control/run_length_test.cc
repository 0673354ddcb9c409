// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/run_length.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

// So many calls of a pass each.
void LearnCalls(int count, double call_seconds, double pass_seconds,
                RunLength& run) {
  for (int i = 0; i < count; ++i) {
    run.Learn({.link = {.call_seconds = call_seconds + pass_seconds,
                        .compute_seconds = pass_seconds}});
  }
}

// What comes of many calls that take so long beside passes of so long.
int After(double call_seconds, double pass_seconds, int most = 8) {
  MeasuredRunLength run(most);
  for (int i = 0; i < 50; ++i) {
    const int num_passes = run.Next();
    const double compute = num_passes * pass_seconds;
    run.Learn({.link = {.call_seconds = call_seconds + compute,
                        .compute_seconds = compute},
               .num_passes = num_passes});
  }
  return run.Next();
}

TEST(RunLengthTest, BeginsWithAToken) {
  EXPECT_EQ(MeasuredRunLength(8).Next(), 1);
}

TEST(RunLengthTest, ACallsOwnTimeIsAFiftiethOfItsTokens) {
  EXPECT_EQ(After(0.0002, 0.025), 1);
  EXPECT_EQ(After(0.0003, 0.004), 4);
  EXPECT_EQ(After(0.020, 0.010), 8);  // and no more than that
  EXPECT_EQ(After(0.020, 0.010, /*most=*/64), 20);
}

TEST(RunLengthTest, TokensDoNotWaitLongForEachOther) {
  EXPECT_EQ(After(0.050, 0.025), 8);
  EXPECT_EQ(After(0.050, 0.100), 2);
  EXPECT_EQ(After(0.050, 0.300), 1);
}

TEST(RunLengthTest, SeveralNearTheirVerifierStayInStep) {
  bool has_company = true;
  MeasuredRunLength run(8, [&has_company] { return has_company; });
  const auto learn = [&run](double call_seconds) {
    LearnCalls(8, call_seconds, /*pass_seconds=*/0.025, run);
  };
  learn(0.005);
  EXPECT_EQ(run.Next(), 1);
  learn(0.020);
  EXPECT_EQ(run.Next(), 1);  // it measures
  run.Learn({.link = {.call_seconds = 0.045, .compute_seconds = 0.025}});
  EXPECT_EQ(run.Next(), 8);
  learn(0.005);
  has_company = false;
  EXPECT_EQ(run.Next(), 8);
}

TEST(RunLengthTest, FollowsTheNetwork) {
  MeasuredRunLength run(8);
  const auto learn = [&run](double call_seconds) {
    LearnCalls(24, call_seconds, /*pass_seconds=*/0.02, run);
  };
  learn(0.0001);
  EXPECT_EQ(run.Next(), 1);
  learn(0.04);
  EXPECT_EQ(run.Next(), 8);
  learn(0.0001);
  EXPECT_LE(run.Next(), 5);
}

TEST(RunLengthTest, PassesOverDraftsSayLittleOfThoseWithout) {
  MeasuredRunLength run(8);
  const RunLength::Call drafts = {
      .link = {.call_seconds = 0.15, .compute_seconds = 0.1}, .num_drafts = 4};
  run.Learn(drafts);
  EXPECT_EQ(run.Next(), 2);
  run.Learn({.link = {.call_seconds = 0.07, .compute_seconds = 0.02}});
  EXPECT_EQ(run.Next(), 8);
  for (int i = 0; i < 20; ++i) run.Learn(drafts);
  EXPECT_EQ(run.Next(), 8);
}

TEST(RunLengthTest, APassThatTakesNoTimeIsNoReasonToStop) {
  EXPECT_EQ(After(0.0001, 0), 8);
  EXPECT_EQ(After(0, 0), 1);
}

}  // namespace
}  // namespace outrider
