// SPDX-License-Identifier: Apache-2.0
// The greatest logits of rows as core/kernels/cuda finds them, against their
// definition.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/top_rows.h"
#include "gtest/gtest.h"
#include "tests/exactness/asked_top_rows.h"
#include "tests/exactness/scored_rows.h"

namespace outrider::testing {
namespace {

using kernels::cuda::TopRowResult;

constexpr float kTopInfinity = std::numeric_limits<float>::infinity();

INSTANTIATE_TEST_SUITE_P(Orders, DeviceTopRowsTest,
                         ::testing::Values(uint64_t{1}));
INSTANTIATE_TEST_SUITE_P(OtherOrders, DeviceTopRowsTest,
                         ::testing::Values(uint64_t{2}, uint64_t{3}));

// Sizes around those of a warp's and a block's reach.
TEST_P(DeviceTopRowsTest, TheGreatestAreThoseOfTheDefinition) {
  for (const int size : {1, 2, 31, 33, 1024, 1025, 5000}) {
    for (const int count : {1, 2, 40, 1024}) {
      SCOPED_TRACE(size);
      const TopAsked asked = {
          .logits = TopLogits(size, static_cast<uint32_t>(size), 9.0f),
          .count = count,
          .temperature = 0.9};
      ExpectAsDefined(asked, AskTopRows({asked})[0]);
    }
  }
}

TEST_P(DeviceTopRowsTest, AmongEqualsTheLowestIdsComeFirst) {
  for (const float unit : {1.0f, 8.0f}) {
    TopAsked asked = {.logits = TopLogits(3000, 4, 3.0f)};
    // Few values, all of them of many tokens; 0 is one, and -0.
    for (float& x : asked.logits) x = std::round(x * unit) / unit;
    for (const int count : {1, 7, 300, 1000}) {
      for (const double temperature : {1.0, 0.0}) {
        asked.count = count;
        asked.temperature = temperature;
        ExpectAsDefined(asked, AskTopRows({asked})[0]);
      }
    }
  }
  // All of them are told, the last warp's too.
  const TopAsked asked = {.logits = std::vector<float>(1000, 1.0f),
                          .count = 1000};
  ExpectAsDefined(asked, AskTopRows({asked})[0]);
}

TEST_P(DeviceTopRowsTest, LogitsThatDifferInTheirLastBitAreToldApart) {
  TopAsked asked = {.logits = TopLogits(700, 5, 1.0f), .count = 35};
  for (size_t i = 0; i < asked.logits.size(); ++i) {
    const auto place = static_cast<float>(i * 37 % 700);
    asked.logits[i] = (i % 2 == 0 ? 1.0f : -1.0f) * (1.0f + place * 0x1p-23f);
  }
  for (const int count : {1, 35, 699}) {
    asked.count = count;
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
}

// Keys are found by some bits at a time: the last of the greatest may differ
// from the next one in any of them.
TEST_P(DeviceTopRowsTest, LogitsThatDifferInOneBitAreToldApart) {
  for (int bit = 0; bit < 31; ++bit) {
    TopAsked asked = {.logits = std::vector<float>(40, 1.0f), .count = 20};
    for (size_t i = 1; i < 40; i += 2) {
      asked.logits[i] = std::bit_cast<float>(
          std::bit_cast<uint32_t>(asked.logits[i]) ^ (1u << bit));
    }
    if (!std::isfinite(asked.logits[1])) continue;
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
}

TEST_P(DeviceTopRowsTest, TokensThatAreMovedAreToldAndDoNotCount) {
  TopAsked asked = {.logits = TopLogits(2000, 6, 5.0f), .count = 20};
  for (TokenId id = 3; id < 1999; id += 2) asked.tokens.push_back(id);
  asked.tokens.push_back(1999);
  for (const int count : {1, 20}) {
    asked.count = count;
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
}

TEST_P(DeviceTopRowsTest, AMaskedTokenIsNeverOneOfThem) {
  TopAsked asked = {.logits = TopLogits(1500, 8, 5.0f), .count = 30};
  std::fill(asked.logits.begin() + 12, asked.logits.end(), -kTopInfinity);
  asked.tokens = {4, 700};
  ExpectAsDefined(asked, AskTopRows({asked})[0]);
  asked.count = 1;
  ExpectAsDefined(asked, AskTopRows({asked})[0]);
  std::fill(asked.logits.begin(), asked.logits.end(), -kTopInfinity);
  for (const int count : {1, 30}) {
    asked.count = count;
    const TopRowResult none = AskTopRows({asked})[0].result;
    EXPECT_EQ(none.count, 0);
    EXPECT_EQ(none.rest, 0);
    EXPECT_TRUE(none.is_valid);
  }
}

TEST_P(DeviceTopRowsTest, PaddingIsNoToken) {
  TopAsked asked = {
      .logits = TopLogits(1100, 9, 5.0f), .vocab_size = 1030, .count = 9};
  std::fill(asked.logits.begin() + 1030, asked.logits.end(), 99.0f);
  for (const int count : {1, 9}) {
    asked.count = count;
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
}

// A list of candidates has 2048 places. Where more logits are equal, the row is
// looked at itself.
TEST_P(DeviceTopRowsTest, OfEqualsThereMayBeMoreThanCandidatesHavePlaces) {
  for (const int num_equal : {2047, 2048, 2049, 5500}) {
    SCOPED_TRACE(num_equal);
    TopAsked asked = {.logits = TopLogits(6001, 11, 3.0f)};
    for (int i = 0; i < num_equal; ++i) {
      asked.logits[static_cast<size_t>(i * 7 % 6001)] = 4.0f;
    }
    asked.logits[5990] = 5.0f;
    for (const bool is_moved : {false, true}) {
      asked.tokens = is_moved ? std::vector<TokenId>{7, 5990, 6000}
                              : std::vector<TokenId>{};
      for (const int count : {2, 1024}) {
        asked.count = count;
        ExpectAsDefined(asked, AskTopRows({asked})[0]);
      }
    }
  }
}

// Tokens 8192 apart are of one group: there is one bound for five of them.
TEST_P(DeviceTopRowsTest, TheGreatestMayKeepToFewGroups) {
  for (const int num_groups : {5, 280, 320}) {
    TopAsked asked = {.logits = TopLogits(40003, 12, 3.0f), .count = 1024};
    for (size_t i = 0; i < asked.logits.size(); ++i) {
      if (static_cast<int>(i % 8192) < num_groups) asked.logits[i] += 7.0f;
    }
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
    // The greatest keep to fewer groups than are asked for.
    for (size_t i = 0; i < asked.logits.size(); ++i) {
      const bool is_masked = static_cast<int>(i % 8192) >= num_groups;
      if (is_masked) asked.logits[i] = -kTopInfinity;
    }
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
}

// Nothing is between the first of them and the others, which a bound that lies
// between the greatest and the least cannot part.
TEST_P(DeviceTopRowsTest, LogitsMayBeAsFarApartAsNumbersAre) {
  for (const float far : {1e9f, 1e30f, 3e38f, -1e9f, -3e38f}) {
    TopAsked asked = {.logits = TopLogits(4001, 13, 3.0f), .count = 30};
    asked.logits[1000] = far;
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
    std::fill(asked.logits.begin() + 700, asked.logits.end(), far);
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
    asked.logits[3999] = -far;
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
}

// Rows lie one after the other: of four equally long ones of an odd length each
// begins elsewhere, seen from an address that four logits are read at.
TEST_P(DeviceTopRowsTest, ARowMayBeginAndEndAnywhere) {
  for (const int size : {3, 5, 1021, 1022, 1023, 1024, 4097, 16385}) {
    SCOPED_TRACE(size);
    for (const int count : {1, 40}) {
      std::vector<TopAsked> all;
      for (uint32_t i = 0; i < 4; ++i) {
        all.push_back({.logits = TopLogits(size, i, 6.0f), .count = count});
        // Its ends are among them, and so are its neighbours' ends.
        all.back().logits.front() = i % 2 == 0 ? 7.0f : 6.5f;
        all.back().logits.back() = i % 2 == 0 ? 6.5f : 7.0f;
      }
      all[2].tokens = {0, size - 2};
      const auto told = AskTopRows(all);
      for (size_t i = 0; i < all.size(); ++i) {
        ExpectAsDefined(all[i], told[i]);
        const TopRowResult alone = AskTopRows({all[i]})[0].result;
        EXPECT_EQ(alone.rest, told[i].result.rest);
        EXPECT_EQ(alone.mass, told[i].result.mass);
      }
    }
  }
}

// Threads put candidates into the list as they come.
TEST(DeviceTopRowsOrderTest, AnAnswerDoesNotDependOnTheOrderOfThreads) {
  const TopAsked asked = {
      .logits = Logits(9001, 16, 6.0f), .count = 300, .temperature = 0.7};
  std::vector<TopTold> all;
  for (const uint64_t seed : {1, 2, 3, 4}) {
    kernels::cuda::emulation::SetSeed(seed);
    all.push_back(AskTopRows({asked})[0]);
    EXPECT_EQ(all.back().answer.ids, all[0].answer.ids);
    EXPECT_EQ(all.back().result.rest, all[0].result.rest);
    EXPECT_EQ(all.back().result.mass, all[0].result.mass);
  }
}

// Nobody asks for the weight of the others at temperature 0.
TEST_P(DeviceTopRowsTest, TheGreatestAloneMayBeAnywhere) {
  for (const int place : {0, 31, 32, 1023, 1024, 4095, 4096, 4999}) {
    for (const double temperature : {0.0, 1.0}) {
      TopAsked asked = {.logits = TopLogits(5000, 7, 3.0f),
                        .temperature = temperature};
      asked.logits[static_cast<size_t>(place)] = 4.0f;
      ExpectAsDefined(asked, AskTopRows({asked})[0]);
      // The first of two.
      asked.logits[4999] = 4.0f;
      ExpectAsDefined(asked, AskTopRows({asked})[0]);
    }
  }
}

// Their marks are beyond what a launch has of shared memory without asking. One
// order of threads will do: emulation takes a second for it.
TEST(DeviceTopRowsLargeTest, AVocabularyMayNeedMoreSharedMemoryThanIsFree) {
  for (const int size : {380000, 1 << 19}) {
    TopAsked asked = {.logits = Logits(size, 2, 4.0f), .count = 3};
    asked.tokens = {0, size - 1};
    ExpectAsDefined(asked, AskTopRows({asked})[0]);
  }
}

TEST_P(DeviceTopRowsTest, ARowThatIsNoneIsSaidToBe) {
  for (const float bad : {kTopInfinity, std::nanf("")}) {
    for (const int place : {0, 31, 40, 41, 42, 1499}) {
      TopAsked asked = {.logits = TopLogits(1500, 3, 2.0f)};
      asked.logits[static_cast<size_t>(place)] = bad;
      for (const int count : {1, 5}) {
        asked.count = count;
        asked.tokens = {};
        EXPECT_FALSE(AskTopRows({asked})[0].result.is_valid) << place;
        asked.tokens = {place};
        EXPECT_FALSE(AskTopRows({asked})[0].result.is_valid) << place;
      }
    }
  }
}

TEST_P(DeviceTopRowsTest, AnswersAreAsDefinedFromOneToSixteenRows) {
  std::vector<TopAsked> all;
  for (int i = 0; i < 16; ++i) {
    all.push_back({.logits = TopLogits(70, static_cast<uint32_t>(i), 6.0f),
                   .count = i % 3 == 0 ? 1 : 5 * i,
                   .temperature = 0.3 * (i % 5)});
    if (i % 4 == 3) all.back().tokens = {i, 40 + i};
    const auto told = AskTopRows(all);
    for (size_t j = 0; j < all.size(); ++j) {
      SCOPED_TRACE(i);
      ExpectAsDefined(all[j], told[j]);
    }
  }
}

TEST_P(DeviceTopRowsTest, AnAnswerDependsOnItsOwnRowAlone) {
  std::vector<TopAsked> all;
  for (int i = 0; i < 6; ++i) {
    // One of them or many, by chance and at temperature 0.
    const int pair = i / 2;
    all.push_back({.logits = TopLogits(1200, static_cast<uint32_t>(i), 6.0f),
                   .count = i % 2 == 0 ? 1 : 60 * i,
                   .temperature = 0.5 * pair,
                   .tokens = {i, 100 + i}});
  }
  const auto together = AskTopRows(all);
  for (size_t i = 0; i < all.size(); ++i) {
    ExpectAsDefined(all[i], together[i]);
    EXPECT_EQ(AskTopRows({all[i]})[0].result.rest, together[i].result.rest);
  }
}

}  // namespace
}  // namespace outrider::testing
