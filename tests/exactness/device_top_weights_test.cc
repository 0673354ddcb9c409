// SPDX-License-Identifier: Apache-2.0
// What core/kernels/cuda says that the other logits of a row weigh.
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/cuda_model/device_question.h"
#include "gtest/gtest.h"
#include "tests/exactness/asked_top_rows.h"

namespace outrider::testing {
namespace {

using DeviceTopWeightsTest = DeviceTopRowsTest;
INSTANTIATE_TEST_SUITE_P(Orders, DeviceTopWeightsTest,
                         ::testing::Values(uint64_t{1}));
INSTANTIATE_TEST_SUITE_P(OtherOrders, DeviceTopWeightsTest,
                         ::testing::Values(uint64_t{2}, uint64_t{3}));

// Weights down to 2^-126, where float32 begins to lose digits.
TEST_P(DeviceTopWeightsTest, WhatIsFarBelowTheGreatestHasItsWeight) {
  for (const float offset : {-30.0f, -50.0f, -80.0f}) {
    TopAsked asked = {.logits = TopLogits(3001, 14, 7.0f), .count = 1};
    for (float& x : asked.logits) x += offset + 100.0f;
    asked.logits[17] = 100.0f;
    asked.logits[18] = -std::numeric_limits<float>::infinity();
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
    // The others are below all that is told.
    for (size_t i = 0; i < 60; ++i) asked.logits[i * 50] = 100.0f;
    asked.count = 60;
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
  for (const double temperature : {0.03, 0.2, 30.0}) {
    const TopAsked asked = {.logits = TopLogits(3000, 15, 3.0f),
                            .count = 25,
                            .temperature = temperature};
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
}

// docs/device-rows.md: an exponent is rounded once, exp2f is within two units.
// Nearer the greatest it may be rounded twice, which is as little there.
// `asked` is for all but some tokens, which have one logit.
void ExpectRoundedLittle(const TopAsked& asked, const TopTold& told,
                         float logit) {
  const double distance = double{logit} - double{100.3f};
  const double exponent = distance * ScaleOf(asked.temperature);
  const double right = (asked.size() - asked.count) * std::exp2(exponent);
  const int times = exponent > -64 ? 2 : 1;
  EXPECT_NEAR(told.result.rest / right, 1,
              0x1.8p-22 - times * 0x1p-24 * M_LN2 * exponent)
      << exponent;
}

TEST_P(DeviceTopWeightsTest, AWeightIsRoundedAsLittleAsItSays) {
  for (const double temperature : {1.0, 0.7}) {
    std::vector<TopAsked> all;
    std::vector<float> others;
    for (int i = 0; i < 100; ++i) {
      others.push_back(
          static_cast<float>(100 - (20 + 0.6337 * i) * temperature));
      all.push_back({.logits = std::vector<float>(40, others.back()),
                     .temperature = temperature});
      all.back().logits[static_cast<size_t>(i % 40)] = 100.3f;
    }
    const auto told = AskTopRows(all);
    for (size_t i = 0; i < all.size(); ++i) {
      ExpectRoundedLittle(all[i], told[i], others[i]);
    }
  }
}

// Four logits are weighed together, and one of them may be far.
TEST_P(DeviceTopWeightsTest, AWeightIsRoundedAsLittleBesideGreatOnes) {
  std::vector<TopAsked> all;
  std::vector<float> others;
  for (int i = 0; i < 400; ++i) {
    others.push_back(static_cast<float>(100 - (45 + 0.1037 * i)));
    all.push_back({.logits = std::vector<float>(40, 100.3f), .count = 30});
    for (size_t j = 0; j < 10; ++j) {
      all.back().logits[4 * j + static_cast<size_t>(i % 4)] = others.back();
    }
  }
  const auto told = AskTopRows(all);
  for (size_t i = 0; i < all.size(); ++i) {
    ExpectRoundedLittle(all[i], told[i], others[i]);
  }
}

}  // namespace
}  // namespace outrider::testing
