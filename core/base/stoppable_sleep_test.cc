// SPDX-License-Identifier: Apache-2.0
#include "core/base/stoppable_sleep.h"

#include <gtest/gtest.h>

#include <thread>

namespace outrider {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(StoppableSleepTest, EndsAfterItsTimeWhereNobodyStopsIt) {
  const std::stop_source source;
  EXPECT_TRUE(SleepUnlessStopped(milliseconds(1), source.get_token()));
  EXPECT_TRUE(SleepUnlessStopped(milliseconds(1), {}));
}

TEST(StoppableSleepTest, DoesNotBeginOnceItIsStopped) {
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(SleepUnlessStopped(hours(1), source.get_token()));
  EXPECT_FALSE(SleepUnlessStopped(milliseconds(0), source.get_token()));
}

TEST(StoppableSleepTest, AThreadThatEndsDoesNotSleepItsTimeOut) {
  bool was_stopped = false;
  {
    const std::jthread thread([&](const std::stop_token& stop) {
      was_stopped = !SleepUnlessStopped(hours(1), stop);
    });
  }
  EXPECT_TRUE(was_stopped);
}

}  // namespace
}  // namespace outrider
