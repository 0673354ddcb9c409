// SPDX-License-Identifier: Apache-2.0
// The greatest logits of rows as core/kernels/cuda finds them, against their
// definition.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "core/cuda_model/device_question.h"
#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/top_rows.h"
#include "core/testing/answer_on_host.h"
#include "gtest/gtest.h"
#include "tests/exactness/scored_rows.h"

namespace outrider::testing {
namespace {

using kernels::cuda::DeviceArray;
using kernels::cuda::TopRow;
using kernels::cuda::TopRowResult;

// docs/algorithm.md: what float32 weights may change of a sum of them.
constexpr double kRestTolerance = 1e-5;
constexpr float kTopInfinity = std::numeric_limits<float>::infinity();

struct TopAsked {
  std::vector<float> logits = {};
  int vocab_size = 0;  // 0: as many as logits
  int count = 1;
  double temperature = 1;
  std::vector<TokenId> tokens = {};

  int size() const {
    return vocab_size > 0 ? vocab_size : static_cast<int>(logits.size());
  }
};

struct TopTold {
  TopRowResult result = {};
  TopAnswer answer = {};
};

// All of them in one launch; their rows are equally long.
std::vector<TopTold> AskTopRows(const std::vector<TopAsked>& all) {
  const size_t stride = all[0].logits.size();
  std::vector<float> logits;
  std::vector<int> tokens;
  for (const TopAsked& asked : all) {
    logits.insert(logits.end(), asked.logits.begin(), asked.logits.end());
    tokens.insert(tokens.end(), asked.tokens.begin(), asked.tokens.end());
  }
  const DeviceArray<float> device_logits(logits);
  std::vector<TopRow> rows;
  int first_token = 0, first_top = 0;
  for (const TopAsked& asked : all) {
    rows.push_back({.logits = device_logits.data() + rows.size() * stride,
                    .vocab_size = asked.size(),
                    .scale = ScaleOf(asked.temperature),
                    .first_token = first_token,
                    .num_tokens = static_cast<int>(asked.tokens.size()),
                    .first_top = first_top,
                    .num_top = asked.count,
                    .wants_mass = asked.tokens.empty()});
    first_token += rows.back().num_tokens;
    first_top += asked.count;
  }
  const DeviceArray<TopRow> device_rows(rows);
  const DeviceArray<int> device_tokens(tokens);
  const DeviceArray<float> token_logits(tokens.size());
  const DeviceArray<int> ids(static_cast<size_t>(first_top));
  const DeviceArray<float> top_logits(static_cast<size_t>(first_top));
  const DeviceArray<TopRowResult> results(rows.size());
  kernels::cuda::TopRows({.rows = device_rows.data(),
                          .num_rows = static_cast<int>(rows.size()),
                          .vocab_size = static_cast<int>(stride),
                          .tokens = device_tokens.data(),
                          .token_logits = token_logits.data(),
                          .ids = ids.data(),
                          .logits = top_logits.data(),
                          .results = results.data()},
                         nullptr);
  const auto read_results = results.Read();
  const auto read_values = token_logits.Read();
  const auto read_ids = ids.Read();
  const auto read_logits = top_logits.Read();
  std::vector<TopTold> told;
  for (size_t i = 0; i < rows.size(); ++i) {
    TopTold& one = told.emplace_back(TopTold{.result = read_results[i]});
    const auto values = read_values.begin() + rows[i].first_token;
    one.answer.token_logits.assign(values, values + rows[i].num_tokens);
    const int count = std::clamp(one.result.count, 0, rows[i].num_top);
    const auto first_id = read_ids.begin() + rows[i].first_top;
    one.answer.ids.assign(first_id, first_id + count);
    const auto first_logit = read_logits.begin() + rows[i].first_top;
    one.answer.logits.assign(first_logit, first_logit + count);
  }
  return told;
}

void ExpectAsDefined(const TopAsked& asked, const TopTold& told) {
  const RowQuestion question = {
      .vocab_size = asked.size(),
      .temperature = asked.temperature,
      .what = TopQuestion{.count = asked.count,
                          .tokens = asked.tokens,
                          .wants_top_probability = asked.tokens.empty()}};
  const std::optional<RowAnswer> right = AnswerOnHost(question, asked.logits);
  ASSERT_TRUE(right.has_value());
  const auto& top = std::get<TopAnswer>(*right);
  EXPECT_TRUE(told.result.is_valid);
  EXPECT_EQ(told.result.count, static_cast<int>(top.ids.size()));
  EXPECT_EQ(told.answer.ids, top.ids);
  EXPECT_EQ(told.answer.logits, top.logits);
  EXPECT_EQ(told.answer.token_logits, top.token_logits);
  EXPECT_NEAR(told.result.rest, top.rest, kRestTolerance * top.rest);
  EXPECT_NEAR(told.result.mass * top.top_probability,
              asked.tokens.empty() ? 1 : 0, kRestTolerance);
}

// Runs threads in three orders, with other logits each time.
class DeviceTopRowsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  DeviceTopRowsTest() { kernels::cuda::emulation::SetSeed(GetParam()); }

  static std::vector<float> TopLogits(int size, uint32_t seed, float spread) {
    return Logits(size, seed + DataOfOrder(GetParam()), spread);
  }
};
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

// Weights down to 2^-126, where float32 begins to lose digits.
TEST_P(DeviceTopRowsTest, WhatIsFarBelowTheGreatestHasItsWeight) {
  for (const float offset : {-30.0f, -50.0f, -80.0f}) {
    TopAsked asked = {.logits = TopLogits(3001, 14, 7.0f), .count = 1};
    for (float& x : asked.logits) x += offset + 100.0f;
    asked.logits[17] = 100.0f;
    asked.logits[18] = -kTopInfinity;
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

// docs/algorithm.md: an exponent is rounded once, exp2f is within two units.
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

TEST_P(DeviceTopRowsTest, AWeightIsRoundedAsLittleAsItSays) {
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
TEST_P(DeviceTopRowsTest, AWeightIsRoundedAsLittleBesideGreatOnes) {
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
