// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/rope.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(RopeTest, AnglesAreThoseOfTheAbsolutePositions) {
  const std::vector<float> frequencies = {1.0f, 0.25f};
  const std::vector<int> positions = {0, 3, 100000};
  const RotaryAngles angles = AnglesAt(frequencies, positions);
  const RotaryAngles larger = AnglesAt(frequencies, positions, 1.5f);
  EXPECT_EQ(angles.cosine.sizes(), at::IntArrayRef({3, 2}));
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < 2; ++i) {
      const double angle = positions[row] * frequencies[i];
      EXPECT_NEAR(angles.cosine[row][i].item<double>(), std::cos(angle), 1e-6);
      EXPECT_NEAR(angles.sine[row][i].item<double>(), std::sin(angle), 1e-6);
      EXPECT_NEAR(larger.cosine[row][i].item<double>(), 1.5 * std::cos(angle),
                  2e-6);
      EXPECT_NEAR(larger.sine[row][i].item<double>(), 1.5 * std::sin(angle),
                  2e-6);
    }
  }
}

}  // namespace
}  // namespace outrider
