// SPDX-License-Identifier: Apache-2.0
#include "core/wire/field_convert.h"

#include <numeric>
#include <utility>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int kManyTokens = 300;

// A row of bfloat16 weights, through the wire.
absl::StatusOr<Distribution> ThroughARow(std::vector<double> weights) {
  std::vector<TokenId> ids(weights.size());
  std::iota(ids.begin(), ids.end(), 0);
  const v1::SparseRow row =
      ToProto(Distribution::FromSorted(std::move(ids), std::move(weights)));
  EXPECT_EQ(row.weight_dtype(), v1::DTYPE_BFLOAT16);
  return FromProto(row, kManyTokens);
}

TEST(FieldConvertTest, NoDraftRowIsSoFarOffByRoundingAs255EqualWeights) {
  const Distribution equal = Distribution::FromSorted(
                                 [] {
                                   std::vector<TokenId> ids(255);
                                   std::iota(ids.begin(), ids.end(), 0);
                                   return ids;
                                 }(),
                                 std::vector<double>(255, 1.0 / 255))
                                 .RoundedToBFloat16();
  EXPECT_NEAR(equal.total(), 1.0038757, 1e-7);
  EXPECT_THAT(ThroughARow({equal.weights().begin(), equal.weights().end()}),
              IsOk());
}

TEST(FieldConvertTest, ADraftRowThatIsOffByMoreThanRoundingIsRefused) {
  constexpr double kRest = 0x1.48p-8;  // about .005
  EXPECT_THAT(ThroughARow({0.5, 0.5, kRest}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sum to 1, not to 1.005")));
  EXPECT_THAT(ThroughARow({0.5, 0.25, 0.245117187500}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sum to 1, not to 0.995")));
}

}  // namespace
}  // namespace outrider
