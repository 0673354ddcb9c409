// SPDX-License-Identifier: Apache-2.0
#include "core/base/available_cores.h"

#include <thread>

#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(AvailableCoresTest, AQuotaIsRoundedDownToWholeCoresButNotToNone) {
  EXPECT_EQ(CoresOfQuota("200000 100000"), 2);
  EXPECT_EQ(CoresOfQuota("250000 100000"), 2);
  EXPECT_EQ(CoresOfQuota("50000 100000"), 1);
}

TEST(AvailableCoresTest, NoQuotaIsNoLimit) {
  EXPECT_EQ(CoresOfQuota("max 100000"), 0);
  EXPECT_EQ(CoresOfQuota("-1 100000"), 0);
  EXPECT_EQ(CoresOfQuota(""), 0);
}

TEST(AvailableCoresTest, ThereIsAtLeastOneAndNoMoreThanTheMachineHas) {
  EXPECT_GE(AvailableCores(), 1);
  EXPECT_LE(AvailableCores(),
            static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace outrider
