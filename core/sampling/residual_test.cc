// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/residual.h"

#include <vector>

#include "core/testing/enumerating_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::EnumeratingSource;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr uint64_t kFirst = 5;

TEST(ResidualTest, IsWhatTheTargetHasBeyondTheDraftAndLastTheTail) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const Distribution p =
      Distribution::FromSorted({0, 1, 2, 3}, {0.1, 0.4, 0.3, 0.2});
  const Distribution q = Distribution::FromSorted({0, 1}, {0.75, 0.25});
  const TargetRow row = TargetRow::FromDense(p, q.support(), kFirst, source);
  EXPECT_THAT(ResidualWeights(row, q),
              ElementsAre(0, DoubleNear(0.15, 1e-15), DoubleNear(0.5, 1e-15)));
  EXPECT_THAT(ResidualWeights(row, q, /*share=*/0.5),
              ElementsAre(0, 0, DoubleNear(0.25, 1e-15)));
}

TEST(ResidualTest, FallsBackToThePossibleWhereNothingIsLeft) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const Distribution p = Distribution::FromSorted({1, 2}, {0.5, 0.5});
  const Distribution q =
      Distribution::FromSorted({0, 1, 2, 3}, {1.0, 0.5, 0.5, 1.0});
  // The residual of q against itself has no mass, as p <= q everywhere.
  const TargetRow row = TargetRow::FromDense(q, q.support(), kFirst, source);
  EXPECT_EQ(ReplaceRefused(2, row, q, kFirst, source),
            (Verdict{2, 3, /*lost_residual=*/true}));
  const TargetRow possible =
      TargetRow::FromDense(p, q.support(), kFirst, source);
  EXPECT_GT(p(ReplaceRefused(2, possible, q, kFirst, source).next_token), 0);
}

TEST(ResidualTest, IsNotLostWhereThereIsSomethingToDrawFrom) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const Distribution p = Distribution::FromSorted({0, 1}, {0.25, 0.75});
  const Distribution q = Distribution::FromSorted({0, 1}, {0.75, 0.25});
  const TargetRow row = TargetRow::FromDense(p, q.support(), kFirst, source);
  EXPECT_EQ(ReplaceRefused(0, row, q, kFirst, source), (Verdict{0, 1}));
}

}  // namespace
}  // namespace outrider
