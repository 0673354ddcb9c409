// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/target_row.h"

#include <vector>

#include "core/testing/enumerating_source.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::EnumeratingSource;

constexpr uint64_t kPosition = 12;

Distribution Row() {
  return Distribution::FromSorted({0, 2, 3, 5}, {1.0, 2.0, 3.0, 2.0});
}

// How often each token is the tail's; the mass that was drawn in `draws`.
std::vector<double> TailLaw(const std::vector<TokenId>& support) {
  std::vector<double> law(6);
  EnumeratingSource source;
  while (source.NextTrace()) {
    const TargetRow row =
        TargetRow::FromDense(Row(), support, kPosition, source);
    const TokenId token = row.drawn_token();
    law[token] += source.probability();
  }
  return law;
}

TEST(TargetRowTest, HoldsPOnTheSupportAndTheMassOffIt) {
  EnumeratingSource source;
  // Token 1 is on the draft's support and impossible for the target.
  const std::vector<TokenId> support = {1, 2, 5};
  const TargetRow row = TargetRow::FromDense(Row(), support, kPosition, source);
  EXPECT_EQ(row(1), 0.0);
  EXPECT_EQ(row(2), 0.25);
  EXPECT_EQ(row(5), 0.25);
  EXPECT_EQ(row.tail_mass(), 0.5);
}

TEST(TargetRowTest, TheTailTokenFollowsPOffTheSupport) {
  const std::vector<double> law = TailLaw({1, 2, 5});
  EXPECT_DOUBLE_EQ(law[0], 0.25);
  EXPECT_DOUBLE_EQ(law[3], 0.75);
  EXPECT_EQ(law[1] + law[2] + law[4] + law[5], 0.0);
}

TEST(TargetRowTest, AnEmptySupportMakesTheTailAllOfP) {
  const std::vector<double> law = TailLaw({});
  EXPECT_DOUBLE_EQ(law[0], 0.125);
  EXPECT_DOUBLE_EQ(law[2], 0.25);
  EXPECT_DOUBLE_EQ(law[3], 0.375);
  EXPECT_DOUBLE_EQ(law[5], 0.25);
  EnumeratingSource source;
  EXPECT_EQ(TargetRow::FromDense(Row(), {}, kPosition, source).tail_mass(),
            1.0);
}

TEST(TargetRowTest, NoMassIsLeftWhereTheSupportHoldsEverything) {
  EnumeratingSource source;
  const std::vector<TokenId> all = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(TargetRow::FromDense(Row(), all, kPosition, source).tail_mass(), 0);
}

// 1 - sum over the support would be 0 here.
TEST(TargetRowTest, ATinyTailKeepsItsDigits) {
  EnumeratingSource source;
  const std::vector<TokenId> support = {0};
  const TargetRow row =
      TargetRow::FromDense(Distribution::FromSorted({0, 1}, {1.0, 1e-30}),
                           support, kPosition, source);
  EXPECT_EQ(row.tail_mass(), 1e-30);
}

TEST(TargetRowTest, ACertainTokenIsDrawnWithoutACoin) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const auto row = [&](const std::vector<TokenId>& support) {
    return TargetRow::FromDense(Distribution::OneHot(3), support, kPosition,
                                source);
  };
  EXPECT_EQ(row({2, 3})(3), 1.0);
  EXPECT_EQ(row({2, 3}).tail_mass(), 0.0);
  EXPECT_EQ(row({2, 4})(4), 0.0);
  EXPECT_EQ(row({2, 4}).tail_mass(), 1.0);
  EXPECT_EQ(row({2, 4}).drawn_token(), 3);
  EXPECT_EQ(row({}).drawn_token(), 3);
  EXPECT_TRUE(source.path().empty());
}

// A coin that is flipped without need would reach a second decision later.
TEST(TargetRowTest, FlipsItsCoinOnlyWhenTheTailIsAskedFor) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const TargetRow row = TargetRow::FromDense(Row(), {}, kPosition, source);
  EXPECT_EQ(row.tail_mass(), 1.0);
  EXPECT_TRUE(source.path().empty());
  row.drawn_token();
  EXPECT_EQ(source.path().size(), 1u);
}

TEST(TargetRowDeathTest, HasNoProbabilityOffTheSupport) {
  EnumeratingSource source;
  const std::vector<TokenId> support = {2};
  const TargetRow row = TargetRow::FromDense(Row(), support, kPosition, source);
  EXPECT_DEATH(row(3), "off the draft's support");
}

}  // namespace
}  // namespace outrider
