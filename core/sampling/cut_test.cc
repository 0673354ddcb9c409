// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/cut.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

Distribution FourTokens() {
  return Distribution::FromSorted({2, 5, 6, 9}, {0.2, 0.2, 0.4, 0.2});
}

TEST(KeepTopTest, KeepsTheHeaviestAndTiesGoToTheLowestIds) {
  const Distribution row = FourTokens();
  EXPECT_THAT(KeepTop(row, 1).support(), ElementsAre(6));
  EXPECT_THAT(KeepTop(row, 3).support(), ElementsAre(2, 5, 6));
  EXPECT_THAT(KeepTop(row, 3).weights(), ElementsAre(0.2, 0.2, 0.4));
  EXPECT_THAT(KeepTop(row, 4).support(), ElementsAre(2, 5, 6, 9));
  EXPECT_THAT(KeepTop(row, 99).support(), ElementsAre(2, 5, 6, 9));
}

TEST(KeepTopTest, TheTokenThatBringsTheMassIsTheLast) {
  const Distribution row = Distribution::FromSorted({1, 2, 3, 4}, {8, 4, 2, 2});
  EXPECT_THAT(KeepTop(row, 9, 1e-6).support(), ElementsAre(1));
  EXPECT_THAT(KeepTop(row, 9, 0.5).support(), ElementsAre(1));
  EXPECT_THAT(KeepTop(row, 9, 0.51).support(), ElementsAre(1, 2));
  EXPECT_THAT(KeepTop(row, 9, 0.8).support(), ElementsAre(1, 2, 3));
  EXPECT_THAT(KeepTop(row, 9, 0.999999).support(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(KeepTop(row, 2, 0.8).support(), ElementsAre(1, 2));
}

// The definition, by sorting everything.
std::vector<TokenId> Expected(const std::vector<double>& weights, size_t most,
                              double mass) {
  std::vector<TokenId> ids(weights.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
    return weights[a] > weights[b];
  });
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  size_t kept = 0;
  while (kept < std::min(most, ids.size()) &&
         (mass == 1 || sum < mass * total)) {
    sum += weights[ids[kept++]];
  }
  ids.resize(kept);
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(KeepTopTest, IsWhatSortingTheWholeRowGives) {
  std::mt19937 random(1);
  for (const int size : {1, 2, 63, 64, 65, 300, 2000}) {
    for (const int steepness : {0, 1, 4}) {  // 0: all equal
      std::vector<double> weights(size);
      std::normal_distribution<double> normal(0, steepness);
      for (double& weight : weights) {
        // Rounded, so that there are ties, and sums are exact in any order.
        weight = (1 + std::round(64 * std::exp(normal(random)))) / 64;
      }
      std::vector<TokenId> ids(size);
      std::iota(ids.begin(), ids.end(), 0);
      const Distribution row = Distribution::FromSorted(ids, weights);
      for (const size_t most : {1, 32, 64, 100, 4000}) {
        for (const double mass : {0.01, 0.5, 0.9, 0.98, 0.9999, 1.0}) {
          EXPECT_THAT(KeepTop(row, most, mass).support(),
                      ElementsAreArray(Expected(weights, most, mass)))
              << size << " " << steepness << " " << most << " " << mass;
        }
      }
    }
  }
}

}  // namespace
}  // namespace outrider
