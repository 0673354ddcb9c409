// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/coins.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "core/sampling/philox.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr double kLargestUniform = 1 - 0x1p-53;
constexpr int kNumTopBits = 20;

TEST(CoinsTest, CountersAreLaidOutAsTheSpecificationSays) {
  // {index, position, generation's low half, purpose and its high part}.
  const uint64_t seed = 0x0123456789abcdef;
  const CoinKey key = {Purpose::kDraft, 77, 0x00a1b2c3d4e5f607};
  const auto words =
      Philox4x32({0, 77, 0xd4e5f607, 0x01a1b2c3}, {0x89abcdef, 0x01234567});
  const uint64_t bits = static_cast<uint64_t>(words[1]) << 32 | words[0];
  EXPECT_EQ(Coins(seed).Uniform(key),
            static_cast<double>(bits >> 11) * 0x1p-53);
}

TEST(CoinsTest, NoiseIsLaidOutAsTheSpecificationSays) {
  // {token / 2, position, 0, purpose}; a block has the noise of two tokens. The
  // key has all of the seed, its upper half too.
  const uint64_t seed = 0x0123456789abcdef;
  const uint32_t purpose = static_cast<uint32_t>(Purpose::kGumbel) << 24;
  const auto words = Philox4x32({21, 77, 0, purpose}, {0x89abcdef, 0x01234567});
  for (const int place : {0, 1}) {
    const uint64_t bits =
        static_cast<uint64_t>(words[2 * place + 1]) << 32 | words[2 * place];
    EXPECT_EQ(Coins(seed).OpenUniform(77, 42 + place),
              (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52);
  }
}

TEST(CoinsTest, EveryHalfOfTheSeedDecidesRaces) {
  std::vector<TokenId> ids(100);
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<double> weights(ids.size(), 1.0);
  std::set<size_t> by_lower;
  std::set<size_t> by_upper;
  for (uint64_t i = 0; i < 32; ++i) {
    by_lower.insert(Coins(i).Race(7, ids, weights));
    by_upper.insert(Coins(i << 32).Race(7, ids, weights));
  }
  EXPECT_GT(by_lower.size(), 10u);
  EXPECT_GT(by_upper.size(), 10u);
}

TEST(CoinsTest, UniformsHave53BitsAndStayBelowOne) {
  const Coins coins(7);
  bool any_odd = false;
  for (uint64_t position = 0; position < 1000; ++position) {
    const double uniform = coins.Uniform({Purpose::kTail, position});
    EXPECT_GE(uniform, 0);
    EXPECT_LT(uniform, 1);
    const double scaled = uniform * 0x1p53;
    EXPECT_EQ(scaled, std::floor(scaled));
    any_odd |= std::fmod(scaled, 2) == 1;
  }
  EXPECT_TRUE(any_odd);
}

TEST(CoinsTest, EveryPartOfTheKeyAndOfTheSeedMatters) {
  std::set<double> seen;
  for (const uint64_t seed : {0ull, 1ull, 1ull << 32, ~0ull}) {
    const Coins coins(seed);
    for (const Purpose purpose :
         {Purpose::kDraft, Purpose::kAccept, Purpose::kResidual, Purpose::kTail,
          Purpose::kGumbel}) {
      for (const uint64_t position : {0, 1, 2, 1 << 20}) {
        for (const uint64_t generation :
             {0ull, 1ull, 1ull << 31, 1ull << 32, 1ull << 55}) {
          EXPECT_TRUE(
              seen.insert(coins.Uniform({purpose, position, generation}))
                  .second);
        }
      }
    }
  }
}

TEST(CoinsTest, EqualKeysSeeEqualNumbersWhateverCameBetween) {
  Coins coins(42);
  const std::vector<double> weights = {0.2, 0.5, 0.3};
  const CoinKey key = {Purpose::kDraft, 5, 9};
  const size_t first = coins.Categorical(key, weights);
  for (uint64_t i = 0; i < 10; ++i) {
    coins.Categorical({Purpose::kDraft, i, 1}, weights);
  }
  EXPECT_EQ(coins.Categorical(key, weights), first);
  EXPECT_EQ(Coins(42).Categorical(key, weights), first);
}

TEST(AcceptsAtTest, NeverAcceptsWhatTheTargetExcludes) {
  for (const double q : {1.0, 0.5, 0x1p-1022, 0x1p-1074}) {
    EXPECT_FALSE(AcceptsAt(0.0, 0.0, q));
    EXPECT_FALSE(AcceptsAt(kLargestUniform, 0.0, q));
  }
}

TEST(AcceptsAtTest, AlwaysAcceptsWhatTheTargetLikesAsMuch) {
  for (const double p : {1.0, 0.3, 0x1p-1074}) {
    EXPECT_TRUE(AcceptsAt(kLargestUniform, p, p));
    EXPECT_TRUE(AcceptsAt(kLargestUniform, p, p / 2 + 0x1p-1074));
  }
}

TEST(AcceptsAtTest, AcceptsAsManyUniformsAsPIsOfQ) {
  constexpr int kCount = 1 << kNumTopBits;
  for (const double ratio : {0.0, 0x1p-20, 0.1, 1.0 / 3, 0.999999}) {
    int accepted = 0;
    for (int i = 0; i < kCount; ++i) {
      accepted += AcceptsAt(i * 0x1p-20, ratio * 0.7, 0.7);
    }
    EXPECT_NEAR(accepted * 0x1p-20, ratio, 0x1p-20) << ratio;
  }
}

TEST(AcceptsAtDeathTest, NotANumberIsAnError) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_DEATH(AcceptsAt(0.5, nan, 0.5), "check failed");
  EXPECT_DEATH(AcceptsAt(0.5, 0.5, nan), "check failed");
  EXPECT_DEATH(AcceptsAt(0.5, 0.5, 0.0), "check failed");
}

// All values of the top bits: the share of every index is its weight's.
TEST(ChooseByWeightTest, GivesEveryIndexItsShareOfAllUniforms) {
  constexpr int kCount = 1 << kNumTopBits;
  const std::vector<std::vector<double>> rows = {
      {1.0},
      {0.5, 0.5},
      {0.0, 0.1, 0.0, 0.2, 0.7, 0.0},
      {1.0, 0x1p-20, 1.0},
      {3e300, 1e300},
      {1e-300, 2e-300, 3e-300},
      std::vector<double>(100, 0.1),
  };
  for (const std::vector<double>& weights : rows) {
    double total = 0;
    for (const double weight : weights) total += weight;
    std::vector<int> counts(weights.size());
    for (int i = 0; i < kCount; ++i) {
      const size_t index = ChooseByWeight(i * 0x1p-20, weights);
      ASSERT_LT(index, weights.size());
      ++counts[index];
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(counts[i] * 0x1p-20, weights[i] / total, 0x1p-20 + 1e-12);
      if (weights[i] == 0) {
        EXPECT_EQ(counts[i], 0);
      }
    }
  }
}

// Rows longer than what is summed at a time, with whole stretches of zeros.
TEST(ChooseByWeightTest, LongRowsGiveWhatARunningSumGives) {
  std::vector<double> weights(3000, 0.0);
  for (size_t i = 300; i < 1900; i += 1 + i % 3) weights[i] = 1 + i % 7;
  for (size_t i = 2600; i < 2700; ++i) weights[i] = 2;
  double total = 0;  // whole numbers: exact in any order
  for (const double weight : weights) total += weight;
  for (double below = 0; below < total; below += 1) {
    const double threshold = below + 0.5;
    size_t expected = 0;
    double running = weights[0];
    while (running <= threshold) running += weights[++expected];
    EXPECT_EQ(ChooseByWeight(threshold / total, weights), expected);
  }
  EXPECT_EQ(ChooseByWeight(kLargestUniform, weights), 2699u);
  EXPECT_EQ(ChooseByWeight(0.0, weights), 300u);
}

TEST(ChooseByWeightTest, TheEdgesNeverFallOnAWeightOfZero) {
  EXPECT_EQ(ChooseByWeight(0.0, {0.0, 0.4, 0.6, 0.0}), 1u);
  EXPECT_EQ(ChooseByWeight(kLargestUniform, {0.0, 0.4, 0.6, 0.0}), 2u);
  EXPECT_EQ(ChooseByWeight(kLargestUniform, {0x1p-1074, 0.0}), 0u);
  // Where rounding leaves the whole sum at the threshold.
  EXPECT_EQ(ChooseByWeight(kLargestUniform, std::vector<double>(77, 0.1)), 76u);
}

TEST(ChooseByWeightDeathTest, RefusesWhatIsNoDistribution) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_DEATH(ChooseByWeight(0.5, {0.0, 0.0}), "no weight is positive");
  EXPECT_DEATH(ChooseByWeight(0.5, {0.5, nan}), "check failed");
  EXPECT_DEATH(ChooseByWeight(0.5, {0.5, infinity}), "check failed");
}

}  // namespace
}  // namespace outrider
