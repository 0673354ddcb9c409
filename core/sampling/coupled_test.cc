// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/coupled.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/sampling/coins.h"
#include "core/sampling/process.h"
#include "core/sampling/score_draft.h"
#include "core/testing/chi_square.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr uint64_t kSeed = 20261121;
constexpr int kNumDraws = 200000;

Distribution Row(std::vector<double> weights) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < weights.size(); ++i) {
    ids.push_back(static_cast<TokenId>(i));
  }
  return Distribution::FromSorted(std::move(ids), std::move(weights));
}

TEST(DrawCoupledTest, DrawsWithTheRowsProbabilities) {
  Coins coins(kSeed);
  const std::vector<double> p = {0.05, 0.4, 0.3, 0.001, 0.249};
  const Distribution row = Row(p);
  std::vector<int64_t> counts(p.size());
  for (int t = 0; t < kNumDraws; ++t) ++counts[DrawCoupled(row, t, coins)];
  const testing::ChiSquare result = testing::TestCounts(counts, p);
  EXPECT_LT(result.statistic, result.critical);
}

// A worked example: .43529 in closed form, where independent draws
// agree with sum p q = .23 and no coupling with more than 1 - TV = .5.
TEST(DrawCoupledTest, TwoRowsAgreeAsOftenAsTheFormulaSays) {
  Coins coins(kSeed);
  const std::vector<double> p = {0.1, 0.6, 0.3};
  const std::vector<double> q = {0.5, 0.1, 0.4};
  double expected = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    double sum = 0;
    for (size_t v = 0; v < p.size(); ++v) {
      sum += std::max(p[v] / p[i], q[v] / q[i]);
    }
    expected += 1 / sum;
  }
  EXPECT_NEAR(expected, 0.43529, 1e-5);
  int num_equal = 0;
  for (int t = 0; t < kNumDraws; ++t) {
    num_equal += DrawCoupled(Row(p), t, coins) == DrawCoupled(Row(q), t, coins);
  }
  const double deviation = std::sqrt(expected * (1 - expected) / kNumDraws);
  EXPECT_NEAR(static_cast<double>(num_equal) / kNumDraws, expected,
              6 * deviation);
}

// Dense rows, rows with gaps, and those that are one first and then the other.
TEST(DrawCoupledTest, FindsTheWinnerThatAllLogarithmsFind) {
  Coins coins(kSeed);
  for (const int dense : {0, 3, 500, 1301}) {
    std::vector<TokenId> ids;
    std::vector<double> weights;
    for (int v = 0; v < 1301; ++v) {
      ids.push_back(v <= dense ? v : ids.back() + 1 + 3 * (v % 7));
      weights.push_back(std::exp(-0.02 * (v % 501)));
    }
    for (int t = 0; t < 300; ++t) {
      size_t winner = 0;
      double best = HUGE_VAL;
      for (size_t i = 0; i < ids.size(); ++i) {
        const double time =
            -std::log(coins.OpenUniform(t, ids[i])) / weights[i];
        if (time < best) {
          best = time;
          winner = i;
        }
      }
      EXPECT_EQ(coins.Race(t, ids, weights), winner);
    }
  }
}

// A draft row is a few ids of the vocabulary: the noise belongs to the id.
TEST(DrawCoupledTest, ALikelyTokenWinsInTheCutRowToo) {
  Coins coins(kSeed);
  const Distribution whole = Row({0.1, 0.2, 0.3, 0.4});
  const Distribution cut = Distribution::FromSorted({1, 3}, {0.2, 0.4});
  for (int t = 0; t < 1000; ++t) {
    const TokenId token = DrawCoupled(whole, t, coins);
    if (token == 1 || token == 3) {
      EXPECT_EQ(DrawCoupled(cut, t, coins), token);
    }
  }
}

TEST(DrawCoupledTest, NeverDrawsAWeightOfZero) {
  Coins coins(kSeed);
  const std::vector<TokenId> ids = {0, 1, 2};
  const std::vector<double> weights = {0, 1e-300, 0};
  for (int t = 0; t < 1000; ++t) EXPECT_EQ(coins.Race(t, ids, weights), 1u);
}

TEST(DrawCoupledTest, NoiseIsInTheOpenInterval) {
  const Coins coins(kSeed);
  for (int t = 0; t < 1000; ++t) {
    for (const TokenId v : {0, 1, 128255}) {
      EXPECT_GT(coins.OpenUniform(t, v), 0.0);
      EXPECT_LT(coins.OpenUniform(t, v), 1.0);
    }
  }
  EXPECT_NE(coins.OpenUniform(1, 0), coins.OpenUniform(1, 1));
  EXPECT_NE(coins.OpenUniform(1, 0), coins.OpenUniform(2, 0));
}

TEST(CoupledRuleTest, CommitsTheTargetsOwnDrawAfterTheDraftsThatEqualIt) {
  Coins coins(kSeed);
  const std::vector<float> logits = {0.5F, 0.0F, 1.0F, -1.0F};
  std::vector<TokenId> own;
  for (int t = 0; t < 4; ++t) {
    own.push_back(DrawCoupled(*Process(logits, {}, {}), 10 + t, coins));
  }
  const std::vector<RowView> rows(4, RowView{logits});
  for (int num_equal = 0; num_equal <= 3; ++num_equal) {
    Draft draft = {.start = 10};
    for (int i = 0; i < 3; ++i) {
      const TokenId token = i == num_equal ? (own[i] + 1) % 4 : own[i];
      draft.tokens.push_back(token);
      draft.distributions.push_back(Distribution::OneHot(token));
    }
    const auto target = ScoreDraft(
        rows, DraftBlock::Of(draft, {}, RuleKind::kCoupled), {}, coins);
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(CoupledRule().Judge(draft, *target, coins),
              (Verdict{num_equal, own[num_equal]}));
  }
}

}  // namespace
}  // namespace outrider
