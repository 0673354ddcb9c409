// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/norm.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "core/kernels/random_values.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

constexpr int kSizes[] = {1, 7, 15, 16, 33, 384, 1000};

TEST(RmsNormTest, AgreesWithDoublePrecisionAtEveryLevel) {
  for (const Level level : SupportedLevels()) {
    for (const int size : kSizes) {
      const auto x = RandomValues(3 * size, 3);
      const auto weight = RandomValues(size, 5);
      std::vector<float> y(3 * size + 1, 77.0f);
      RmsNorm({.x = x.data(),
               .weight = weight.data(),
               .num_rows = 3,
               .size = size,
               .epsilon = 1e-5f,
               .y = y.data()},
              level);
      for (int m = 0; m < 3; ++m) {
        double squares = 0.0;
        for (int i = 0; i < size; ++i) {
          squares += double{x[m * size + i]} * x[m * size + i];
        }
        const double factor = 1.0 / std::sqrt(squares / size + double{1e-5f});
        for (int i = 0; i < size; ++i) {
          ASSERT_NEAR(y[m * size + i], x[m * size + i] * factor * weight[i],
                      1e-6)
              << LevelName(level) << ", size " << size << ", element " << i;
        }
      }
      EXPECT_EQ(y[3 * size], 77.0f) << "written beyond the last row";
    }
  }
}

TEST(LayerNormTest, AgreesWithDoublePrecisionAtEveryLevel) {
  for (const Level level : SupportedLevels()) {
    for (const int size : kSizes) {
      auto x = RandomValues(3 * size, 7);
      for (float& value : x) value += 3.0f;  // a mean that matters
      const auto weight = RandomValues(size, 9);
      const auto bias = RandomValues(size, 11);
      std::vector<float> y(3 * size);
      LayerNorm({.x = x.data(),
                 .weight = weight.data(),
                 .bias = bias.data(),
                 .num_rows = 3,
                 .size = size,
                 .epsilon = 1e-5f,
                 .y = y.data()},
                level);
      for (int m = 0; m < 3; ++m) {
        double mean = 0.0;
        for (int i = 0; i < size; ++i) mean += x[m * size + i];
        mean /= size;
        double squares = 0.0;
        for (int i = 0; i < size; ++i) {
          squares += std::pow(x[m * size + i] - mean, 2);
        }
        const double factor = 1.0 / std::sqrt(squares / size + double{1e-5f});
        for (int i = 0; i < size; ++i) {
          const double expected =
              (x[m * size + i] - mean) * factor * weight[i] + bias[i];
          ASSERT_NEAR(y[m * size + i], expected, 4e-6)
              << LevelName(level) << ", size " << size << ", element " << i;
        }
      }
    }
  }
}

TEST(NormTest, ResultsMayReplaceTheirInputs) {
  const auto x = RandomValues(2 * 37, 13);
  const auto weight = RandomValues(37, 15);
  for (const Level level : SupportedLevels()) {
    for (const auto norm : {RmsNorm, LayerNorm}) {
      NormArgs args = {.x = x.data(),
                       .weight = weight.data(),
                       .num_rows = 2,
                       .size = 37,
                       .epsilon = 1e-6f};
      std::vector<float> apart(x.size());
      args.y = apart.data();
      norm(args, level);
      std::vector<float> in_place = x;
      args.x = args.y = in_place.data();
      norm(args, level);
      EXPECT_EQ(in_place, apart);
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
