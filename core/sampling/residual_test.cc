// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/residual.h"

#include <optional>
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
  const Distribution q =
      Distribution::FromSorted({0, 1, 2, 3}, {1.0, 0.5, 0.5, 1.0});
  // The residual of q against itself has no mass, as p <= q everywhere.
  const TargetRow row = TargetRow::FromDense(q, q.support(), kFirst, source);
  EXPECT_EQ(ReplaceRefused(2, row, q, kFirst, source),
            (Verdict{2, 3, /*lost_residual=*/true}));
}

// A row as a verifier may send it: its sum is 1 but for rounding.
TEST(ResidualTest, TheLastTokenIsNotTakenWhereItIsImpossible) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const Distribution q =
      Distribution::FromSorted({1, 2, 3}, {0.5, 0.5 - 0x1p-24, 0x1p-24});
  const auto row = TargetRow::FromParts({1, 2, 3}, {0.5, 0.4999999, 0},
                                        /*tail_mass=*/0, std::nullopt);
  ASSERT_TRUE(row.ok());
  ASSERT_GE(q(1), (*row)(1));
  ASSERT_GE(q(2), (*row)(2));
  EXPECT_EQ(ReplaceRefused(0, *row, q, kFirst, source),
            (Verdict{0, 2, /*lost_residual=*/true}));
}

// What the target has beyond the draft there is lost in a share of its row, as
// block verification takes one.
TEST(ResidualTest, ATokenThatTheTargetWantsMoreIsTakenBeforeThosePossible) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const Distribution q = Distribution::FromSorted({1, 2, 3}, {0.5, 0.25, 0.25});
  const auto row =
      TargetRow::FromParts({1, 2, 3}, {0.5, 0.25 + 1e-9, 0.25 - 1e-9},
                           /*tail_mass=*/0, std::nullopt);
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(ReplaceRefused(0, *row, q, kFirst, source, /*share=*/1 - 1e-8),
            (Verdict{0, 2, /*lost_residual=*/true}));
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
