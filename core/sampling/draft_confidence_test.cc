// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/draft_confidence.h"

#include <cmath>
#include <vector>

#include "core/testing/special_values.h"
#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::kInfinity;
using testing::IsOk;
using testing::StatusIs;

TEST(TopProbabilityTest, IsTheSoftmaxOfTheHighestLogit) {
  EXPECT_DOUBLE_EQ(TopProbability({3.0f}), 1);
  EXPECT_DOUBLE_EQ(TopProbability({1.0f, 1.0f, -kInfinity}), 0.5);
  EXPECT_NEAR(TopProbability({std::log(3.0f), 0.0f}), 0.75, 1e-7);
}

TEST(TopProbabilityTest, SumsRowsOfAnyLength) {
  for (const size_t size : {511, 512, 513, 4096, 5000}) {
    const std::vector<float> logits(size, -2.5f);
    EXPECT_NEAR(TopProbability(logits), 1.0 / size, 1e-12);
  }
}

}  // namespace
}  // namespace outrider
