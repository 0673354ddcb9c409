// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/circuit_breaker.h"

#include <chrono>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CircuitBreakerTest : public ::testing::Test {
 protected:
  // One call that fails `elapsed` after the test's beginning.
  bool Fail(CircuitBreaker::Clock::duration elapsed) {
    EXPECT_TRUE(breaker_.Allow(At(elapsed)));
    return breaker_.Failure(At(elapsed));
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
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
  breaker_.Abandon();
  EXPECT_TRUE(breaker_.Allow(At(seconds(1))));
}

TEST_F(CircuitBreakerTest, CallsThatBeganBeforeThePauseDoNotLengthenIt) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(breaker_.Allow(At(seconds(0))));
  for (int i = 0; i < 5; ++i) breaker_.Failure(At(seconds(0)));
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
