// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/rope.h"

#include <cmath>
#include <vector>

#include "core/kernels/random_values.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

TEST(RopeTest, TurnsEachElementWithItsPartnerHalfAHeadAway) {
  for (const int half : {1, 5, 16, 32, 40}) {
    const int context_length = 12, num_heads = 3, stride = 6 * half + 4;
    std::vector<float> cos, sin;
    for (int p = 0; p < context_length; ++p) {
      for (int d = 0; d < half; ++d) {
        const double angle = p * std::pow(10000.0, -double(d) / half);
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    const auto before = RandomValues(4 * stride, 3);
    for (const Level level : SupportedLevels()) {
      auto x = before;
      ApplyRope({.x = x.data(),
                 .row_stride = stride,
                 .num_rows = 4,
                 .num_heads = num_heads,
                 .head_dim = 2 * half,
                 .first_position = 8,
                 .cos = cos.data(),
                 .sin = sin.data()},
                level);
      for (int i = 0; i < 4 * stride; ++i) {
        const int m = i / stride, within = i % stride;
        if (within >= 6 * half) {
          ASSERT_EQ(x[i], before[i]) << "beyond the heads of row " << m;
          continue;
        }
        const int d = within % half;
        const double angle = (8 + m) * std::pow(10000.0, -double(d) / half);
        const double expected = within % (2 * half) < half
                                    ? before[i] * std::cos(angle) -
                                          before[i + half] * std::sin(angle)
                                    : before[i] * std::cos(angle) +
                                          before[i - half] * std::sin(angle);
        ASSERT_NEAR(x[i], expected, 1e-6)
            << LevelName(level) << ", half " << half << ", element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
