// SPDX-License-Identifier: Apache-2.0
#include "core/testing/chi_square.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

TEST(ChiSquareTest, IsTheHandWorkedSum) {
  // Expected 50, 30, 20: 4/50 + 9/30 + 1/20.
  const ChiSquare result =
      TestCounts(std::vector<int64_t>{48, 33, 19}, std::vector{0.5, 0.3, 0.2});
  EXPECT_NEAR(result.statistic, 0.43, 1e-12);
  EXPECT_EQ(result.degrees_of_freedom, 2);
}

TEST(ChiSquareTest, CriticalValuesAreNotBelowThePublishedOnes) {
  // For 3, 7 and 80 degrees of freedom these are 44.8, 55.9 and 180.5 at 1e-9.
  const auto critical = [](int num_cells) {
    return TestCounts(std::vector<int64_t>(num_cells, 1000),
                      std::vector<double>(num_cells, 1.0 / num_cells))
        .critical;
  };
  EXPECT_GE(critical(4), 44.8);
  EXPECT_LE(critical(4), 1.13 * 44.8);
  EXPECT_GE(critical(8), 55.9);
  EXPECT_LE(critical(8), 1.06 * 55.9);
  EXPECT_GE(critical(81), 180.5);
  EXPECT_LE(critical(81), 1.005 * 180.5);
}

TEST(ChiSquareTest, AnImpossibleCountIsInfinite) {
  const ChiSquare result =
      TestCounts(std::vector<int64_t>{500, 499, 1}, std::vector{0.5, 0.5, 0.0});
  EXPECT_TRUE(std::isinf(result.statistic));
}

TEST(ChiSquareTest, RareCellsArePooled) {
  const ChiSquare result =
      TestCounts(std::vector<int64_t>{900, 60, 15, 15, 10},
                 std::vector{0.9, 0.06, 0.015, 0.015, 0.01});
  EXPECT_EQ(result.degrees_of_freedom, 2);
  EXPECT_NEAR(result.statistic, 0, 1e-12);
}

}  // namespace
}  // namespace outrider::testing
