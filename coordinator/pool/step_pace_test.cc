// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/step_pace.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

TEST(StepPaceTest, AFastNodeHasAQuarterOfASecond) {
  StepPace pace;
  pace.Begin(5);
  EXPECT_EQ(pace.Limit(), milliseconds(250));
  pace.Answered(5, 5, 0.001, milliseconds(2));
  EXPECT_EQ(pace.Limit(), milliseconds(250));
}

TEST(StepPaceTest, ASlowNodeHasEightTimesItsSlowestStep) {
  StepPace pace;
  pace.Begin(5);
  pace.Answered(5, 5, 0.1, milliseconds(100));
  EXPECT_EQ(pace.Limit(), milliseconds(800));
}

TEST(StepPaceTest, AStepGivenUpAsLateRaisesTheLimit) {
  StepPace pace;
  pace.Begin(5);
  pace.Late(5, milliseconds(250));
  EXPECT_EQ(pace.Limit(), milliseconds(2000));
}

TEST(StepPaceTest, WithoutATextTakenInNothingIsKnownOfOne) {
  StepPace pace;
  pace.Begin(1000);
  EXPECT_EQ(pace.Limit(), std::nullopt);
  pace.Failed(1000);
  EXPECT_EQ(pace.Limit(), milliseconds(250));
}

TEST(StepPaceTest, AllTextsUnderWayCountFourTimesTheirTime) {
  StepPace pace;
  pace.Begin(1000);
  pace.Answered(1000, 1000, 1.0, milliseconds(1500));  // 1 ms a token
  EXPECT_EQ(pace.Limit(), milliseconds(250));
  pace.Begin(100);
  EXPECT_EQ(pace.Limit(), milliseconds(650));
  pace.Begin(100);
  EXPECT_EQ(pace.Limit(), milliseconds(1050));
  pace.Late(100, milliseconds(1050));  // so it is 2 ms
  EXPECT_EQ(pace.Limit(), milliseconds(1050));
}

TEST(StepPaceTest, TokensThatWereReusedTellNothing) {
  StepPace pace;
  pace.Begin(1000);
  pace.Answered(1000, 1, 0.001, milliseconds(3));
  pace.Begin(1000);
  EXPECT_EQ(pace.Limit(), std::nullopt);
}

}  // namespace
}  // namespace outrider
