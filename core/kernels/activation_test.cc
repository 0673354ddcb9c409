// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/activation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/kernels/random_values.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

// Distance in units of the last place of `expected`, at least of the smallest
// denormal.
double UlpsBetween(float x, double expected) {
  int exponent;
  std::frexp(expected, &exponent);
  return std::abs(x - expected) /
         std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(ExpTest, IsWithinTwoUnitsInTheLastPlaceAtEveryLevel) {
  std::vector<float> x;
  for (float value = -103.0f; value < 88.7f; value += 0.0037f) {
    x.push_back(value);
  }
  for (float value = 1e-30f; value < 1.0f; value *= 1.7f) {
    x.push_back(value);
    x.push_back(-value);
  }
  for (const Level level : SupportedLevels()) {
    std::vector<float> y(x.size());
    Exp(x.data(), y.data(), x.size(), level);
    double worst = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double ulps = UlpsBetween(y[i], std::exp(double{x[i]}));
      ASSERT_LE(ulps, 2.0) << LevelName(level) << ", e^" << x[i];
      worst = std::max(worst, ulps);
    }
    RecordProperty(LevelName(level), std::to_string(worst));
  }
}

TEST(ExpTest, GoesToZeroAndInfinityAndKeepsNans) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {-inf,   -1e30f, -104.5f, 0.0f, -0.0f,
                                88.73f, 89.5f,  1e30f,   inf,  nan};
  for (const Level level : SupportedLevels()) {
    std::vector<float> y(x.size());
    Exp(x.data(), y.data(), x.size(), level);
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], 0.0f);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 1.0f);
    EXPECT_EQ(y[4], 1.0f);
    for (int i = 5; i < 9; ++i) EXPECT_EQ(y[i], inf) << x[i];
    EXPECT_TRUE(std::isnan(y[9])) << LevelName(level);
  }
}

TEST(SiluMulTest, GatesTheSecondHalfOfEachRow) {
  for (const Level level : SupportedLevels()) {
    for (const int size : {1, 15, 64, 101}) {
      auto x = RandomValues(3 * 2 * size, 3);
      for (float& value : x) value *= 20.0f;
      std::vector<float> y(3 * size + 1, 77.0f);
      SiluMul({.gate_up = x.data(), .num_rows = 3, .size = size, .y = y.data()},
              level);
      for (int i = 0; i < 3 * size; ++i) {
        const double gate = x[i / size * 2 * size + i % size];
        const double up = x[i / size * 2 * size + size + i % size];
        const double expected = gate / (1.0 + std::exp(-gate)) * up;
        ASSERT_NEAR(y[i], expected, 1e-9 + 1e-6 * std::abs(expected))
            << LevelName(level) << ", gate " << gate;
      }
      EXPECT_EQ(y[3 * size], 77.0f);
    }
  }
}

TEST(SiluMulTest, VeryNegativeGatesGiveZeroNotNan) {
  const std::vector<float> x = {-1000.0f, 5.0f};
  for (const Level level : SupportedLevels()) {
    float y = 77.0f;
    SiluMul({.gate_up = x.data(), .num_rows = 1, .size = 1, .y = &y}, level);
    EXPECT_EQ(y, 0.0f) << LevelName(level);
  }
}

TEST(GeluNewTest, AgreesWithTheFormulaOfGpt2) {
  std::vector<float> x;
  for (float value = -12.0f; value < 12.0f; value += 0.013f) x.push_back(value);
  for (const Level level : SupportedLevels()) {
    auto y = x;
    GeluNew(y.data(), y.size(), level);
    for (size_t i = 0; i < x.size(); ++i) {
      const double a = x[i];
      const double z =
          std::sqrt(2.0 / std::acos(-1.0)) * (a + 0.044715 * a * a * a);
      ASSERT_NEAR(y[i], 0.5 * a * (1.0 + std::tanh(z)),
                  1e-7 + 1e-6 * std::abs(a))
          << LevelName(level) << ", at " << a;
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
