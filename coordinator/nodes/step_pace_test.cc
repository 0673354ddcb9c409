// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/step_pace.h"

#include <chrono>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

TEST(StepPaceTest, AFastNodeHasAQuarterOfASecond) {
  StepPace pace;
  const auto step = pace.Begin(5);
  EXPECT_EQ(pace.Limit(step), milliseconds(250));
  pace.Answered(step, 5, 0.001, milliseconds(2));
  EXPECT_EQ(pace.Limit(pace.Begin(5)), milliseconds(250));
}

TEST(StepPaceTest, ASlowNodeHasEightTimesItsSlowestStep) {
  StepPace pace;
  pace.Answered(pace.Begin(5), 5, 0.1, milliseconds(100));
  EXPECT_EQ(pace.Limit(pace.Begin(5)), milliseconds(800));
}

TEST(StepPaceTest, AVerifierThatGoesOnHasFourTimesThat) {
  StepPace pace;
  const auto begin = [&pace] { return pace.Begin(1, /*may_go_on=*/true); };
  EXPECT_EQ(pace.Limit(begin()), milliseconds(1000));
  pace.Answered(pace.Begin(5), 5, 0.1, milliseconds(100));
  EXPECT_EQ(pace.Limit(begin()), milliseconds(3200));
}

TEST(StepPaceTest, AStepGivenUpAsLateRaisesTheLimit) {
  StepPace pace;
  pace.Late(pace.Begin(5), milliseconds(250));
  EXPECT_EQ(pace.Limit(pace.Begin(5)), milliseconds(2000));
}

TEST(StepPaceTest, AStepUnderWayHasNoMoreTimeAsAnotherWasLate) {
  StepPace pace;
  const auto first = pace.Begin(0);
  const auto second = pace.Begin(0);
  pace.Late(first, milliseconds(250));
  EXPECT_EQ(pace.Limit(second), milliseconds(250));
}

TEST(StepPaceTest, WithoutATextTakenInNothingIsKnownOfOne) {
  StepPace pace;
  const auto text = pace.Begin(1000);
  EXPECT_EQ(pace.Limit(text), std::nullopt);
  pace.Failed(text);
  EXPECT_EQ(pace.Limit(pace.Begin(5)), milliseconds(250));
}

TEST(StepPaceTest, AllTextsUnderWayCountFourTimesTheirTime) {
  StepPace pace;
  // 1 ms a token
  pace.Answered(pace.Begin(1000), 1000, 1.0, milliseconds(1500));
  EXPECT_EQ(pace.Limit(pace.Begin(0)), milliseconds(250));
  pace.Begin(100);
  EXPECT_EQ(pace.Limit(pace.Begin(0)), milliseconds(650));
  pace.Begin(100);
  EXPECT_EQ(pace.Limit(pace.Begin(0)), milliseconds(1050));
}

// The node has them take turns, and so ends none of them before the others.
TEST(StepPaceTest, TextsThatComeLaterCountForThoseThatWait) {
  StepPace pace;
  pace.Answered(pace.Begin(1000), 1000, 1.0, milliseconds(1000));
  const auto first = pace.Begin(100);
  EXPECT_EQ(pace.Limit(first), milliseconds(650));
  const auto second = pace.Begin(100);
  EXPECT_EQ(pace.Limit(first), milliseconds(1050));
  // What was computed meanwhile has taken its time from the first.
  pace.Answered(second, 100, 0.1, milliseconds(200));
  EXPECT_EQ(pace.Limit(first), milliseconds(1050));
  EXPECT_EQ(pace.Limit(pace.Begin(0)), milliseconds(650));
}

TEST(StepPaceTest, TextsThatWereLateTogetherRaiseItOnce) {
  StepPace pace;
  pace.Answered(pace.Begin(1000), 1000, 1.0, milliseconds(1000));
  std::vector<StepPace::Step> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(pace.Begin(1000));
  // Five times as long as they should have taken.
  for (const auto& text : texts) pace.Late(text, std::chrono::seconds(500));
  pace.Begin(1000);
  EXPECT_EQ(pace.Limit(pace.Begin(0)), milliseconds(250 + 4 * 5000));
}

TEST(StepPaceTest, TextsOfALostHourLeaveALimitThatIsOne) {
  StepPace pace;
  pace.Answered(pace.Begin(1000), 1000, 1e18, milliseconds(1000));
  pace.Begin(1000);
  EXPECT_EQ(pace.Limit(pace.Begin(0)),
            std::chrono::hours(1) + milliseconds(250));
}

TEST(StepPaceTest, TokensThatWereReusedTellNothing) {
  StepPace pace;
  pace.Answered(pace.Begin(1000), 1, 0.001, milliseconds(3));
  EXPECT_EQ(pace.Limit(pace.Begin(1000)), std::nullopt);
}

}  // namespace
}  // namespace outrider
