// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/verifier_losses.h"

#include <chrono>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = VerifierLosses::Clock;

TEST(VerifierLossesTest, AllWhoHadStepsAtAVerifierMeetOneLoss) {
  VerifierLosses losses;
  const Clock::time_point lost_at{seconds(1000)};
  const auto first = losses.Met("a:1", lost_at);
  EXPECT_EQ(losses.Met("a:1", lost_at + milliseconds(600)), first);
  EXPECT_FALSE(losses.HasOther({first}, lost_at + seconds(1)));
  EXPECT_TRUE(losses.HasOther({}, lost_at + seconds(1)));
}

TEST(VerifierLossesTest, OneThatIsLostAgainIsAnotherLoss) {
  VerifierLosses losses;
  const Clock::time_point lost_at{seconds(1000)};
  const auto first = losses.Met("a:1", lost_at);
  const auto second = losses.Met("a:1", lost_at + seconds(3));
  EXPECT_NE(second, first);
  EXPECT_TRUE(losses.HasOther({second}, lost_at + seconds(3)));
}

TEST(VerifierLossesTest, VerifiersThatAreLostTogetherAreLossesOfTheirOwn) {
  VerifierLosses losses;
  const Clock::time_point lost_at{seconds(1000)};
  const auto first = losses.Met("a:1", lost_at);
  EXPECT_NE(losses.Met("b:1", lost_at), first);
  EXPECT_TRUE(losses.HasOther({first}, lost_at));
}

TEST(VerifierLossesTest, WhatIsLongAgoTellsNothing) {
  VerifierLosses losses;
  const Clock::time_point lost_at{seconds(1000)};
  losses.Met("a:1", lost_at);
  EXPECT_TRUE(losses.HasOther({}, lost_at + VerifierLosses::kMemory));
  EXPECT_FALSE(
      losses.HasOther({}, lost_at + VerifierLosses::kMemory + milliseconds(1)));
}

TEST(VerifierLossesTest, WhatASessionHasCausedTellsOfNoOtherCause) {
  VerifierLosses losses;
  const Clock::time_point lost_at{seconds(1000)};
  const auto first = losses.Met("a:1", lost_at);
  const auto second = losses.Met("b:1", lost_at);
  losses.Forget({first, second});
  EXPECT_FALSE(losses.HasOther({}, lost_at));
}

}  // namespace
}  // namespace outrider
