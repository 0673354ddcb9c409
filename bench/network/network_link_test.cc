// SPDX-License-Identifier: Apache-2.0
#include "bench/network/network_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace outrider::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr LinkSchedule::Clock::time_point kStart{seconds(1000)};

TEST(LinkOptionsTest, AnEffectIsADelayALimitOrAnEnd) {
  EXPECT_FALSE(HasEffect({}));
  EXPECT_FALSE(HasEffect({.seed = 7}));
  EXPECT_TRUE(HasEffect({.delay = milliseconds(1)}));
  EXPECT_TRUE(HasEffect({.bytes_per_second = 1e6}));
  EXPECT_TRUE(HasEffect({.mean_bytes_to_drop = 1}));
  EXPECT_TRUE(HasEffect({.mean_bytes_to_reset = 1}));
}

TEST(LinkScheduleTest, EveryBlockArrivesAfterTheDelay) {
  LinkSchedule schedule({.delay = milliseconds(5)}, 0, 0);
  EXPECT_EQ(schedule.Arrival(kStart, 100), kStart + milliseconds(5));
  EXPECT_EQ(schedule.Arrival(kStart + milliseconds(1), 1 << 20),
            kStart + milliseconds(6));
}

TEST(LinkScheduleTest, BlocksQueueForTheBandwidthAndThenTakeTheDelay) {
  LinkSchedule schedule({.delay = milliseconds(5), .bytes_per_second = 1e6}, 0,
                        0);
  EXPECT_EQ(schedule.Arrival(kStart, 1000), kStart + milliseconds(6));
  EXPECT_EQ(schedule.Arrival(kStart, 2000), kStart + milliseconds(8));
  // The link was idle in between: nothing is saved up.
  EXPECT_EQ(schedule.Arrival(kStart + seconds(1), 1000),
            kStart + seconds(1) + milliseconds(6));
}

TEST(LinkScheduleTest, JitterStaysInItsBoundsAndKeepsTheOrder) {
  LinkSchedule schedule({.delay = milliseconds(5), .jitter = milliseconds(2)},
                        0, 0);
  auto last = kStart;
  bool is_early = false;
  bool is_late = false;
  for (int i = 0; i < 1000; ++i) {
    const auto now = kStart + microseconds(100) * i;
    const auto arrival = schedule.Arrival(now, 1);
    ASSERT_GE(arrival, last);
    ASSERT_GE(arrival, now + milliseconds(3));
    // Waiting for an earlier block is no more than that one's own lateness.
    ASSERT_LE(arrival, now + milliseconds(7));
    is_early |= arrival < now + milliseconds(4);
    is_late |= arrival > now + milliseconds(6);
    last = arrival;
  }
  EXPECT_TRUE(is_early || is_late);
}

TEST(LinkScheduleTest, TheSeedRepeatsTheJitterAndDirectionsDiffer) {
  const LinkOptions link = {
      .delay = milliseconds(5), .jitter = milliseconds(2), .seed = 7};
  LinkSchedule first(link, 3, 0);
  LinkSchedule again(link, 3, 0);
  LinkSchedule back(link, 3, 1);
  int num_different = 0;
  for (int i = 0; i < 20; ++i) {
    const auto now = kStart + seconds(i);
    const auto arrival = first.Arrival(now, 1);
    EXPECT_EQ(arrival, again.Arrival(now, 1));
    num_different += arrival != back.Arrival(now, 1) ? 1 : 0;
  }
  EXPECT_GT(num_different, 15);
}

TEST(PlanEndTest, WithoutMeansNothingEnds) {
  EXPECT_FALSE(PlanEnd({}, 0).has_value());
}

TEST(PlanEndTest, EndsHaveTheMeanThatWasAskedFor) {
  constexpr int kConnections = 4000;
  double sum = 0;
  for (int i = 0; i < kConnections; ++i) {
    const auto end = PlanEnd({.mean_bytes_to_drop = 1e5}, i);
    ASSERT_TRUE(end.has_value());
    ASSERT_FALSE(end->is_reset);
    sum += static_cast<double>(end->num_bytes);
  }
  EXPECT_NEAR(sum / kConnections, 1e5, 4 * 1e5 / std::sqrt(kConnections));
}

TEST(PlanEndTest, ResetsLeaveDropsWhereTheyWere) {
  int num_resets = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto dropped = PlanEnd({.mean_bytes_to_drop = 1e5}, i);
    const auto either =
        PlanEnd({.mean_bytes_to_drop = 1e5, .mean_bytes_to_reset = 1e5}, i);
    if (either->is_reset) {
      ++num_resets;
      EXPECT_LE(either->num_bytes, dropped->num_bytes);
    } else {
      EXPECT_EQ(either->num_bytes, dropped->num_bytes);
    }
  }
  EXPECT_NEAR(num_resets, 500, 80);
}

TEST(CheckLinkTest, RefusesWhatNoNetworkDoes) {
  EXPECT_FALSE(CheckLink({.delay = milliseconds(-1)}).ok());
  EXPECT_FALSE(
      CheckLink({.delay = milliseconds(1), .jitter = milliseconds(2)}).ok());
  EXPECT_FALSE(CheckLink({.bytes_per_second = -1}).ok());
  EXPECT_TRUE(CheckLink({}).ok());
}

}  // namespace
}  // namespace outrider::bench
