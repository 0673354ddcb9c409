// SPDX-License-Identifier: Apache-2.0
// By the syscall() that this program links; tests/chaos sets real programs'
// clocks (row 24).
#include "core/rpc/steady_waits.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>

#include "core/base/monotonic_clock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

TEST(SteadyEndTest, AWaitLastsAsLongAsItHadToWhenItBegan) {
  const timespec end = SteadyEnd({.tv_sec = 1000, .tv_nsec = 100'000'000},
                                 {.tv_sec = 998, .tv_nsec = 900'000'000},
                                 {.tv_sec = 5, .tv_nsec = 900'000'000});
  EXPECT_EQ(end.tv_sec, 7);
  EXPECT_EQ(end.tv_nsec, 100'000'000);
}

TEST(SteadyEndTest, WhatIsLongPastIsOver) {
  const timespec end = SteadyEnd({.tv_sec = 0, .tv_nsec = 0},
                                 {.tv_sec = 1'800'000'000, .tv_nsec = 0},
                                 {.tv_sec = 5, .tv_nsec = 0});
  EXPECT_EQ(end.tv_sec, 0);
  EXPECT_EQ(end.tv_nsec, 0);
}

// Abseil waits so: until a time of the clock that may be set.
std::chrono::nanoseconds WaitFor(milliseconds time, uint32_t expected = 0) {
  timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += std::chrono::nanoseconds(time).count();
  end.tv_sec += end.tv_nsec / 1'000'000'000;
  end.tv_nsec %= 1'000'000'000;
  const uint32_t word = 0;
  const auto begin = MonotonicClock::now();
  EXPECT_EQ(
      syscall(SYS_futex, &word,
              FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME | FUTEX_PRIVATE_FLAG,
              expected, &end, nullptr, FUTEX_BITSET_MATCH_ANY),
      -1);
  return MonotonicClock::now() - begin;
}

TEST(SteadyWaitsTest, AWaitEndsAtItsTime) {
  EXPECT_GE(WaitFor(milliseconds(30)), milliseconds(29));
  EXPECT_EQ(errno, ETIMEDOUT);
}

TEST(SteadyWaitsTest, AWaitForWhatHasHappenedIsNone) {
  WaitFor(milliseconds(900), /*expected=*/1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(SteadyWaitsTest, OtherCallsAreTheKernels) {
  EXPECT_EQ(syscall(SYS_getpid), getpid());
}

}  // namespace
}  // namespace outrider
