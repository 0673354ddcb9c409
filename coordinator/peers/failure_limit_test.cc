// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/failure_limit.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLeast(2000);

TEST(FailureLimitTest, OfAFastPeerItIsTheLeast) {
  FailureLimit limit(kLeast);
  EXPECT_EQ(limit.Get(), kLeast);
  for (int i = 0; i < 2000; ++i) limit.Answered(milliseconds(5));
  EXPECT_EQ(limit.Get(), kLeast);
}

// Its p99 is far below: among any 512 calls there is one as slow.
TEST(FailureLimitTest, OfASlowPeerItIsFarAboveItsSlowestCall) {
  FailureLimit limit(kLeast);
  for (int i = 0; i < 2000; ++i) {
    limit.Answered(milliseconds(i % 128 == 50 ? 1500 : 700));
    if (i >= 50) {
      ASSERT_EQ(limit.Get(), milliseconds(8 * 1500)) << i;
    }
  }
}

TEST(FailureLimitTest, ItFallsAgainWithAPeerThatHasBecomeFast) {
  FailureLimit limit(kLeast);
  limit.Answered(milliseconds(1500));
  for (int i = 0; i < 1200; ++i) limit.Answered(milliseconds(5));
  EXPECT_EQ(limit.Get(), kLeast);
}

}  // namespace
}  // namespace outrider
