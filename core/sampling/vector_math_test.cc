// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/vector_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

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
  for (size_t size : {1, 5, 16, 17, 100}) {
    for (size_t place = 0; place < size; ++place) {
      std::vector<float> row(size, -2.0f);
      row[place] = -1.0f;
      EXPECT_EQ(Argmax(row), static_cast<int>(place));
      row.back() = -1.0f;
      EXPECT_EQ(Argmax(row), static_cast<int>(place));
    }
  }
  EXPECT_EQ(Argmax(std::vector<float>(20, -kInfinity)), 0);
}

}  // namespace
}  // namespace outrider
