// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/move_limit.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::seconds;

constexpr MoveLimit::Clock::time_point kBegin{};

TEST(MoveLimitTest, ThreeMovesAMinuteAreAllowed) {
  MoveLimit limit;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(limit.IsReached(kBegin + seconds(10 * i)));
    limit.Moved(kBegin + seconds(10 * i));
  }
  EXPECT_TRUE(limit.IsReached(kBegin + seconds(20)));
  EXPECT_TRUE(limit.IsReached(kBegin + seconds(59)));
}

TEST(MoveLimitTest, AMoveIsForgottenAfterAMinute) {
  MoveLimit limit;
  for (int i = 0; i < 3; ++i) limit.Moved(kBegin + seconds(10 * i));
  EXPECT_FALSE(limit.IsReached(kBegin + seconds(60)));
  limit.Moved(kBegin + seconds(60));
  EXPECT_TRUE(limit.IsReached(kBegin + seconds(69)));
  EXPECT_FALSE(limit.IsReached(kBegin + seconds(70)));
}

}  // namespace
}  // namespace outrider
