// SPDX-License-Identifier: Apache-2.0
#include "core/base/flag_checks.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

TEST(FlagChecksTest, ANumberIsInItsRangeOrRefused) {
  const CLI::Validator check = NumberIn(1e-6, 1.0);
  for (const std::string good : {"1e-6", "0.5", "1", "1.0"}) {
    EXPECT_EQ(check(good), "") << good;
  }
  for (const std::string bad : {"nan", "NaN", "-nan", "inf", "-inf", "1e999",
                                "0", "1.0001", "x", "", "0.5x"}) {
    EXPECT_NE(check(bad), "") << bad;
  }
  EXPECT_EQ(check("nan"), "nan is not a number in [1e-06 - 1]");
}

}  // namespace
}  // namespace outrider
