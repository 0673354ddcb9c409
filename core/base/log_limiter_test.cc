// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_limiter.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(LogLimiterTest, OneLineAPeriodSaysHowManyWereLeftOut) {
  using std::chrono::seconds;
  LogLimiter limiter(seconds(10));
  const LogLimiter::Clock::time_point start;
  EXPECT_EQ(limiter.Admit(start), "");
  EXPECT_EQ(limiter.Admit(start + seconds(1)), std::nullopt);
  EXPECT_EQ(limiter.Admit(start + seconds(9)), std::nullopt);
  EXPECT_EQ(limiter.Admit(start + seconds(10)), " (2 more like it before)");
  EXPECT_EQ(limiter.Admit(start + seconds(11)), std::nullopt);
  EXPECT_EQ(limiter.Admit(start + seconds(30)), " (1 more like it before)");
  EXPECT_EQ(limiter.Admit(start + seconds(60)), "");
}

}  // namespace
}  // namespace outrider
