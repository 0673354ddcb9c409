// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/distribution.h"

#include <limits>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(DistributionTest, IsWeightOverTotalOnItsSupportAndZeroOffIt) {
  const auto row = Distribution::Create({1, 4, 7}, {1.0, 2.0, 5.0}, 8);
  ASSERT_THAT(row, IsOk());
  EXPECT_EQ((*row)(1), 0.125);
  EXPECT_EQ((*row)(4), 0.25);
  EXPECT_EQ((*row)(7), 0.625);
  for (const TokenId off : {-1, 0, 2, 3, 5, 6, 8, 1000}) {
    EXPECT_EQ((*row)(off), 0.0) << off;
  }
}

TEST(DistributionTest, ADenseRowNeedsNoSpecialCase) {
  const auto row = Distribution::Create({0, 1, 2}, {0.5, 0.25, 0.25}, 3);
  ASSERT_THAT(row, IsOk());
  EXPECT_EQ((*row)(0), 0.5);
  EXPECT_EQ((*row)(2), 0.25);
}

TEST(DistributionTest, OneHotIsCertain) {
  const Distribution row = Distribution::OneHot(3);
  EXPECT_EQ(row(3), 1.0);
  EXPECT_EQ(row(2), 0.0);
  EXPECT_EQ(row.support().size(), 1u);
}

TEST(DistributionTest, RefusesIdsThatAreOutsideOrDoNotAscend) {
  EXPECT_THAT(Distribution::Create({0, 3}, {1, 1}, 3),
              StatusIs(kInvalid, HasSubstr("token id 3")));
  EXPECT_THAT(Distribution::Create({-1, 0}, {1, 1}, 3),
              StatusIs(kInvalid, HasSubstr("token id 4294967295")));
  EXPECT_THAT(Distribution::Create({1, 1}, {1, 1}, 3),
              StatusIs(kInvalid, HasSubstr("ascend")));
  EXPECT_THAT(Distribution::Create({2, 1}, {1, 1}, 3),
              StatusIs(kInvalid, HasSubstr("ascend")));
}

TEST(DistributionTest, RefusesWeightsThatAreNoProbabilities) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double largest = std::numeric_limits<double>::max();
  for (const double weight : {0.0, -0.0, -1.0, infinity, nan}) {
    EXPECT_THAT(Distribution::Create({0, 1}, {1.0, weight}, 2),
                StatusIs(kInvalid))
        << weight;
  }
  EXPECT_THAT(Distribution::Create({0, 1}, {largest, largest}, 2),
              StatusIs(kInvalid, HasSubstr("overflow")));
  EXPECT_THAT(Distribution::Create({}, {}, 2), StatusIs(kInvalid));
  EXPECT_THAT(Distribution::Create({0}, {1, 1}, 2), StatusIs(kInvalid));
}

TEST(DistributionTest, SubnormalWeightsKeepTheirRatio) {
  const auto row = Distribution::Create({0, 1}, {0x1p-1074, 0x3p-1074}, 2);
  ASSERT_THAT(row, IsOk());
  EXPECT_EQ((*row)(0), 0.25);
  EXPECT_EQ((*row)(1), 0.75);
}

}  // namespace
}  // namespace outrider
