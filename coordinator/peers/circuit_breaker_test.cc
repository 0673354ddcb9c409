// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/circuit_breaker.h"

#include <chrono>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CircuitBreakerTest : public ::testing::Test {
 protected:
  // One call that fails `elapsed` after the test's beginning.
  bool Fail(CircuitBreaker::Clock::duration elapsed) {
    const CircuitBreaker::Permit permit = breaker_.Allow(At(elapsed));
    EXPECT_TRUE(permit);
    return breaker_.Failure(At(elapsed), permit);
  }
  static CircuitBreaker::Clock::time_point At(
      CircuitBreaker::Clock::duration elapsed) {
    return CircuitBreaker::Clock::time_point(std::chrono::hours(1)) + elapsed;
  }

  CircuitBreaker breaker_;
};

TEST_F(CircuitBreakerTest, OpensAfterThreeFailuresInARow) {
  Fail(seconds(0));
  Fail(seconds(0));
  EXPECT_TRUE(breaker_.Allow(At(seconds(0))));
  breaker_.Success();
  Fail(seconds(0));
  Fail(seconds(0));
  Fail(seconds(0));
  EXPECT_FALSE(breaker_.Allow(At(seconds(0))));
  EXPECT_FALSE(breaker_.Allow(At(milliseconds(999))));
}

TEST_F(CircuitBreakerTest, ProbesWithOneCallWhenThePauseIsOver) {
  for (int i = 0; i < 3; ++i) Fail(seconds(0));
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
  EXPECT_FALSE(breaker_.Allow(At(seconds(1))));
  breaker_.Success();
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
}

TEST_F(CircuitBreakerTest, EveryProbeThatFailsDoublesThePauseUpToHalfAMinute) {
  for (int i = 0; i < 3; ++i) Fail(seconds(0));
  seconds now(0);
  for (const int pause : {1, 2, 4, 8, 16, 30, 30}) {
    now += seconds(pause);
    EXPECT_FALSE(breaker_.Allow(At(now - milliseconds(1)))) << pause;
    Fail(now);
  }
}

TEST_F(CircuitBreakerTest, ANodeThatReturnedIsProbedAtOnce) {
  for (int i = 0; i < 3; ++i) Fail(seconds(0));
  Fail(seconds(1));
  EXPECT_FALSE(breaker_.Allow(At(seconds(2))));
  breaker_.Returned();
  EXPECT_FALSE(breaker_.IsOpen(At(seconds(2))));
  Fail(seconds(2));
  // It was a mistake: from the first pause again.
  EXPECT_FALSE(breaker_.Allow(At(milliseconds(2999))));
  EXPECT_TRUE(breaker_.Allow(At(seconds(3))));
}

TEST_F(CircuitBreakerTest, ASuccessfulProbeForgetsThePauses) {
  for (int i = 0; i < 3; ++i) Fail(seconds(0));
  Fail(seconds(1));
  EXPECT_TRUE(breaker_.Allow(At(seconds(3))));
  breaker_.Success();
  for (int i = 0; i < 3; ++i) Fail(seconds(4));
  EXPECT_TRUE(breaker_.Allow(At(seconds(5))));
}

TEST_F(CircuitBreakerTest, AnAbandonedProbeMakesRoomForAnother) {
  for (int i = 0; i < 3; ++i) Fail(seconds(0));
  breaker_.Abandon(breaker_.Allow(At(seconds(1))));
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
}

// Such as those of sessions that have begun, which ask for no permit.
TEST_F(CircuitBreakerTest, CallsThatAreNotTheProbeDoNotEndIt) {
  const CircuitBreaker::Permit before = breaker_.Allow(At(seconds(0)));
  for (int i = 0; i < 3; ++i) Fail(seconds(0));
  const CircuitBreaker::Permit probe = breaker_.Allow(At(seconds(1)));
  breaker_.Abandon(before);
  breaker_.Abandon({});
  EXPECT_FALSE(breaker_.Allow(At(seconds(1))));
  breaker_.Failure(At(seconds(1)), {});
  EXPECT_FALSE(breaker_.Allow(At(seconds(20))));
  breaker_.Abandon(probe);
  EXPECT_TRUE(breaker_.Allow(At(seconds(20))));
}

TEST_F(CircuitBreakerTest, CallsThatBeganBeforeThePauseDoNotLengthenIt) {
  std::vector<CircuitBreaker::Permit> permits;
  for (int i = 0; i < 5; ++i) permits.push_back(breaker_.Allow(At(seconds(0))));
  for (const auto& permit : permits) breaker_.Failure(At(seconds(0)), permit);
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
}

TEST_F(CircuitBreakerTest, TheFirstFailureAndEveryPauseAreNews) {
  EXPECT_TRUE(Fail(seconds(0)));
  EXPECT_FALSE(Fail(seconds(0)));
  EXPECT_TRUE(Fail(seconds(0)));
  EXPECT_TRUE(Fail(seconds(1)));
}

TEST_F(CircuitBreakerTest, SaysWhatItWouldAllowWithoutGivingTheProbeAway) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(breaker_.WouldAllow(At(seconds(0))));
    Fail(seconds(0));
  }
  EXPECT_FALSE(breaker_.WouldAllow(At(milliseconds(999))));
  EXPECT_TRUE(breaker_.WouldAllow(At(seconds(1))));
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
  EXPECT_FALSE(breaker_.WouldAllow(At(seconds(1))));
  breaker_.Success();
  EXPECT_TRUE(breaker_.WouldAllow(At(seconds(1))));
}

TEST_F(CircuitBreakerTest, IsOpenForThePauseAndNoLonger) {
  Fail(seconds(0));
  Fail(seconds(0));
  EXPECT_FALSE(breaker_.IsOpen(At(seconds(0))));
  Fail(seconds(0));
  EXPECT_TRUE(breaker_.IsOpen(At(milliseconds(999))));
  EXPECT_FALSE(breaker_.IsOpen(At(seconds(1))));
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
  breaker_.Success();
  EXPECT_FALSE(breaker_.IsOpen(At(milliseconds(999))));
}

}  // namespace
}  // namespace outrider
