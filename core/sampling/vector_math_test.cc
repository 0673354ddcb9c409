// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/vector_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/testing/special_values.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::kInfinity;

TEST(VectorMathTest, ExpIsWithinFourParts16OfTheLibrarys) {
  std::vector<double> x;
  for (int i = 0; i < 200000; ++i) x.push_back(-708.0 * i / 200000);
  for (int i = 0; i < 1000; ++i) x.push_back(-1e-9 * i);
  std::vector<double> y = x;
  ExpInPlace(absl::MakeSpan(y));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, std::abs(y[i] / std::exp(x[i]) - 1));
  }
  EXPECT_LE(worst, 4e-16);
}

TEST(VectorMathTest, ExpOfZeroIsOneAndFarBelowItIsExactlyZero) {
  std::vector<double> x = {0.0, -709.0, -1e300,
                           -std::numeric_limits<double>::infinity()};
  ExpInPlace(absl::MakeSpan(x));
  EXPECT_EQ(x, (std::vector<double>{1.0, 0.0, 0.0, 0.0}));
}

TEST(VectorMathTest, CheckRowSeesOneBadValueAnywhere) {
  for (size_t size : {1, 7, 16, 33}) {
    for (size_t place = 0; place < size; ++place) {
      std::vector<float> row(size, -kInfinity);
      EXPECT_TRUE(CheckRow(row).all_valid);
      EXPECT_FALSE(CheckRow(row).any_possible);
      row[place] = std::nanf("");
      EXPECT_FALSE(CheckRow(row).all_valid);
      row[place] = kInfinity;
      EXPECT_FALSE(CheckRow(row).all_valid);
      row[place] = 3e38f;
      EXPECT_TRUE(CheckRow(row).all_valid);
      EXPECT_TRUE(CheckRow(row).any_possible);
    }
  }
}

TEST(VectorMathTest, ArgmaxIsTheFirstOfTheGreatest) {
  for (size_t size : {1, 5, 16, 17, 63, 64, 100, 301}) {
    for (size_t place = 0; place < size; ++place) {
      std::vector<float> row(size, -2.0f);
      row[place] = -1.0f;
      EXPECT_EQ(Maximum(absl::MakeConstSpan(row)), -1.0f);
      const std::vector<double> wide(row.begin(), row.end());
      EXPECT_EQ(Maximum(absl::MakeConstSpan(wide)), -1.0);
      EXPECT_EQ(Argmax(row), static_cast<int>(place));
      std::vector<float> high(size, -1.0f);
      high[place] = -2.0f;
      EXPECT_EQ(Minimum(high), -2.0f);
      row.back() = -1.0f;
      EXPECT_EQ(Argmax(row), static_cast<int>(place));
    }
  }
  EXPECT_EQ(Argmax(std::vector<float>(20, -kInfinity)), 0);
}

TEST(VectorMathTest, SumIsOfEightRunningSums) {
  std::vector<double> values;
  for (size_t size = 0; size < 40; ++size) {
    double sums[8] = {};
    for (size_t i = 0; i < size; ++i) sums[i % 8] += values[i];
    double sum = 0;
    for (const double part : sums) sum += part;
    EXPECT_EQ(Sum(values), sum) << size;
    values.push_back(1.0 / (3.0 + static_cast<double>(size)));
  }
}

TEST(VectorMathTest, SoftmaxWeightsAreTheSameOfFloatsAndDoubles) {
  std::vector<float> logits;
  for (int i = 0; i < 37; ++i) logits.push_back(0.37f * static_cast<float>(i));
  logits[5] = -kInfinity;
  const std::vector<double> wide(logits.begin(), logits.end());
  std::vector<double> weights(logits.size());
  SoftmaxWeights(logits, logits.back(), 0.7, absl::MakeSpan(weights));
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected = std::exp((wide[i] - wide.back()) / 0.7);
    EXPECT_NEAR(weights[i], expected, 4e-16 * expected);
  }
  std::vector<double> of_wide(logits.size());
  SoftmaxWeights(wide, wide.back(), 0.7, absl::MakeSpan(of_wide));
  EXPECT_EQ(weights, of_wide);
}

uint64_t HashOf(absl::Span<const double> values) {
  uint64_t hash = 0;
  for (const double value : values) {
    hash = (hash ^ std::bit_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

// Every CPU, compiler and way of compiling has the same bits.
TEST(VectorMathTest, TheBitsAreTheSameEverywhere) {
  std::vector<float> logits;
  for (int i = 0; i < 1003; ++i) {
    logits.push_back(-0.0371f * static_cast<float>(i * i % 4001));
  }
  std::vector<double> weights(logits.size());
  SoftmaxWeights(logits, 0, 0.7, absl::MakeSpan(weights));
  EXPECT_EQ(HashOf(weights), 16940563660794570478u);
  std::vector<double> powers(logits.begin(), logits.end());
  ExpInPlace(absl::MakeSpan(powers));
  EXPECT_EQ(HashOf(powers), 10835992797256333217u);
  weights.push_back(Sum(powers));
  EXPECT_EQ(HashOf(absl::MakeConstSpan(weights).last(1)),
            10341798363065515397u);
}

TEST(VectorMathTest, PlacesAtLeastAreThoseThatCountAtLeastCounts) {
  std::vector<double> values;
  for (size_t size = 0; size < 70; ++size) {
    for (const double least : {-1.0, 0.0, 2.0, 6.0, 7.0}) {
      std::vector<int> expected;
      for (size_t i = 0; i < size; ++i) {
        if (values[i] >= least) expected.push_back(static_cast<int>(i));
      }
      EXPECT_EQ(PlacesAtLeast(values, least), expected);
      EXPECT_EQ(CountAtLeast(values, least), expected.size());
    }
    values.push_back(static_cast<double>(size * 5 % 7));
  }
}

TEST(VectorMathTest, BoundOfTopIsReachedByCountValuesAndFewMore) {
  std::mt19937 bits(1);
  std::vector<float> row;
  for (size_t i = 0; i < 4096; ++i) {
    row.push_back(static_cast<float>(bits() % 50000));
  }
  const std::vector<double> wide(row.begin(), row.end());
  for (const size_t count : {1, 2, 30, 256}) {
    const float bound = BoundOfTop(row, count);
    EXPECT_EQ(BoundOfTop(wide, count), bound);
    const size_t above = CountAtLeast(wide, bound);
    EXPECT_GE(above, count);
    EXPECT_LE(above, 2 * count);
  }
  EXPECT_EQ(BoundOfTop(row, 257), -kInfinity);
  std::vector<float> masked(64, -kInfinity);
  masked[9] = 2;
  EXPECT_EQ(BoundOfTop(masked, 2), -kInfinity);
}

}  // namespace
}  // namespace outrider
