// SPDX-License-Identifier: Apache-2.0
#include "core/node/pass_timer.h"

#include <chrono>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr milliseconds kPeriod(200);

class PassTimerTest : public ::testing::Test {
 protected:
  PassTimer::Clock::duration Look() { return timer_.Look(start_, now_); }
  void PassBegins() { start_ = now_; }

  PassTimer timer_{2 * kPeriod};
  PassTimer::Clock::time_point now_{hours(1)};
  PassTimer::Clock::time_point start_ = {};
};

TEST_F(PassTimerTest, APassHasItsTimeAsLongAsItRuns) {
  PassBegins();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Look(), i * kPeriod);
    now_ += kPeriod;
  }
}

TEST_F(PassTimerTest, EachPassIsTimedByItself) {
  PassBegins();
  for (int i = 0; i < 10; ++i) {
    Look();
    now_ += kPeriod;
  }
  PassBegins();
  now_ += milliseconds(1);
  EXPECT_EQ(Look(), milliseconds(1));
}

// All threads go on at once, and the pass's may not be the first of them.
TEST_F(PassTimerTest, ThatAProcessWasStoppedIsNoTimeOfItsPass) {
  PassBegins();
  now_ += kPeriod;
  Look();
  now_ += hours(8);
  EXPECT_EQ(Look(), 3 * kPeriod);
}

TEST_F(PassTimerTest, NorIsItWhereThePassWasNotSeenBefore) {
  PassBegins();
  now_ += hours(8);
  EXPECT_EQ(Look(), 2 * kPeriod);
}

}  // namespace
}  // namespace outrider
