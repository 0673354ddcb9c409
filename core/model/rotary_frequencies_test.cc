// SPDX-License-Identifier: Apache-2.0
#include "core/model/rotary_frequencies.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr double kPi = 3.14159265358979323846;

ModelConfig Config(RopeScaling scaling) {
  ModelConfig config;
  config.head_dim = 64;
  config.rope_theta = 500000.0;
  config.rope_scaling = scaling;
  return config;
}

double Plain(size_t i) {
  return std::pow(500000.0, -2.0 * static_cast<double>(i) / 64.0);
}

TEST(RotaryFrequenciesTest, FrequenciesFallGeometrically) {
  const std::vector<float> frequencies = RotaryFrequencies(Config({}));
  ASSERT_EQ(frequencies.size(), 32u);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(frequencies[i] / Plain(i), 1.0, 1e-6);
  }
}

TEST(RotaryFrequenciesTest, LinearScalingDividesEveryFrequency) {
  const std::vector<float> frequencies = RotaryFrequencies(
      Config({.kind = RopeScaling::Kind::kLinear, .factor = 4.0}));
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(frequencies[i] * 4.0 / Plain(i), 1.0, 1e-6);
  }
}

TEST(RotaryFrequenciesTest,
     Llama3KeepsShortWavesStretchesLongOnesAndBlendsBetween) {
  const std::vector<float> frequencies =
      RotaryFrequencies(Config({.kind = RopeScaling::Kind::kLlama3,
                                .factor = 8.0,
                                .low_freq_factor = 1.0,
                                .high_freq_factor = 4.0,
                                .original_context_length = 8192.0}));
  int num_blended = 0;
  for (size_t i = 0; i < 32; ++i) {
    const double wavelength = 2.0 * kPi / Plain(i);
    const double ratio = frequencies[i] / Plain(i);
    if (wavelength < 8192.0 / 4.0) {
      EXPECT_NEAR(ratio, 1.0, 1e-6) << i;
    } else if (wavelength > 8192.0) {
      EXPECT_NEAR(ratio, 1.0 / 8.0, 1e-6) << i;
    } else {
      EXPECT_GT(ratio, 1.0 / 8.0) << i;
      EXPECT_LT(ratio, 1.0) << i;
      ++num_blended;
    }
  }
  EXPECT_GT(num_blended, 0);
}

// Pair 9.04 turns 32 times in 8192 positions, and pair 17.49 once.
TEST(RotaryFrequenciesTest, YarnBlendsBetweenTwoPairs) {
  RopeScaling yarn = {.kind = RopeScaling::Kind::kYarn,
                      .factor = 8.0,
                      .original_context_length = 8192.0};
  for (const bool has_whole_bounds : {true, false}) {
    yarn.has_whole_bounds = has_whole_bounds;
    const double first = has_whole_bounds ? 9 : 9.0405;
    const double last = has_whole_bounds ? 18 : 17.4921;
    const std::vector<float> frequencies = RotaryFrequencies(Config(yarn));
    for (size_t i = 0; i < 32; ++i) {
      const double stretched = std::clamp(
          (static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
      EXPECT_NEAR(frequencies[i] / Plain(i), 1 - stretched * 7 / 8, 1e-4) << i;
    }
  }
}

}  // namespace
}  // namespace outrider
