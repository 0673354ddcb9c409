// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "core/sampling/adjust_logits.h"
#include "core/sampling/ask_rows.h"
#include "core/sampling/coins.h"
#include "core/sampling/known_logits.h"
#include "core/sampling/process.h"
#include "core/testing/answer_on_host.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using testing::AnswerOnHost;

constexpr int kRowSize = 3000;

// Uneven by `spread`; some are equal.
std::vector<float> UnevenRow(uint64_t seed, double spread) {
  const Coins coins(seed);
  std::vector<float> row;
  for (int i = 0; i < kRowSize; ++i) {
    const double uniform = coins.OpenUniform(/*position=*/0, i);
    row.push_back(
        static_cast<float>(std::round(-spread * std::log(uniform) * 64) / 64));
  }
  return row;
}

// The distribution of the row by what is asked of it, where that decides.
std::optional<Distribution> OfAnswer(const std::vector<float>& row,
                                     const SamplingParams& params,
                                     const TokenHistory& history) {
  const LogitMoves moves = *MovesOf(params, history, kRowSize);
  const auto answer =
      AnswerOnHost(AskTop(params, moves, kRowSize), row, /*most_top=*/200);
  if (!answer.has_value()) return std::nullopt;
  const auto& made = std::get<TopAnswer>(*answer).row;
  EXPECT_NE(made, nullptr);
  return made == nullptr ? std::nullopt : std::optional(*made);
}

TEST(ProcessTopTest, WhatDecidesGivesTheBitsOfTheWholeRow) {
  const TokenSeq text = {5, 17, 5, 900, 2999, 0, 17};
  const TokenHistory history = {
      .committed = text, .drafts = {&text[2], 2}, .prompt_length = 3};
  const std::vector<SamplingParams> all = {
      {.top_k = 40},
      {.temperature = 0.7, .top_k = 200, .top_p = 0.9},
      {.top_p = 0.6},
      {.temperature = 0.8, .top_p = 0.95},
      {.min_p = 0.05},
      {.temperature = 0.6, .top_p = 0.9, .repetition_penalty = 1.3},
      {.top_k = 9, .presence_penalty = -1.5, .logit_bias = {{1, 4.0}}},
      {.temperature = 0, .frequency_penalty = 0.8}};
  for (const SamplingParams& params : all) {
    int num_decided = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto row = UnevenRow(seed, /*spread=*/2);
      const auto top = OfAnswer(row, params, history);
      if (!top.has_value()) continue;
      ++num_decided;
      const auto whole = Process(row, params, history);
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_EQ(top->support(), whole->support());
      EXPECT_EQ(top->weights(), whole->weights());
      EXPECT_EQ(top->total(), whole->total());
    }
    EXPECT_GT(num_decided, 10) << params.top_p << ", " << params.min_p;
  }
}

TEST(ProcessTopTest, AFlatRowIsNotDecidedByItsTop) {
  const std::vector<float> flat(kRowSize, 1.0f);
  for (const SamplingParams& params :
       {SamplingParams{.top_p = 0.5}, SamplingParams{.min_p = 0.5},
        SamplingParams{.top_p = 0.01}}) {
    EXPECT_FALSE(OfAnswer(flat, params, {}).has_value());
  }
  EXPECT_TRUE(OfAnswer(flat, {.top_k = 3}, {}).has_value());
}

TEST(ProcessTopTest, ARowThatIsCutNowhereIsNotAskedAbout) {
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.presence_penalty = 1},
        SamplingParams{.top_k = kMaxTopLogits + 1}}) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(
        AskTop(params, {}, kRowSize).what));
  }
}

// The weights of 1, 1/2, 1/4 and 1/8, or nearly, and those of others that weigh
// `rest` together.
class TopMassTest : public ::testing::Test {
 protected:
  explicit TopMassTest(double rest = 1) {
    answer_.rest = rest;
    for (const float logit : answer_.logits) {
      weights_.push_back(WeightOfLogit(logit, /*maximum=*/0,
                                       /*temperature=*/1));
    }
  }
  // How many stay where top-p's mass ends so much above the first two, in
  // shares of the whole; nothing where that is not decided.
  std::optional<size_t> NumKept(double above) const {
    double total = answer_.rest;
    for (const double weight : weights_) total += weight;
    const double told = weights_[0] + weights_[1];
    const auto kept =
        ProcessTop(answer_, {.top_p = told / total + above}, /*moves=*/{});
    if (!kept.has_value()) return std::nullopt;
    return kept->support().size();
  }

  TopAnswer answer_ = {
      .ids = {2, 3, 5, 7},
      .logits = {0, std::log(0.5F), std::log(0.25F), std::log(0.125F)}};
  std::vector<double> weights_;
};

// float32 weights of a half of the row may be off by 1e-5 of themselves.
TEST_F(TopMassTest, IsNotDecidedWhereTheRestMayBeMoreOrLess) {
  for (const double above : {-1.5e-6, 0.0, 1.5e-6}) {
    EXPECT_EQ(NumKept(above), std::nullopt) << above;
  }
  EXPECT_EQ(NumKept(-2e-5), 2u);
  EXPECT_EQ(NumKept(2e-5), 3u);
}

class TopSumTest : public TopMassTest {
 protected:
  TopSumTest() : TopMassTest(/*rest=*/1e-10) {}
};

TEST_F(TopSumTest, IsNotDecidedWhereTheSumMayBeMoreOrLess) {
  for (const double above : {-3e-13, 0.0, 3e-13}) {
    EXPECT_EQ(NumKept(above), std::nullopt) << above;
  }
  EXPECT_EQ(NumKept(-3e-12), 2u);
  EXPECT_EQ(NumKept(3e-12), 3u);
}

TEST_F(TopSumTest, IsNotDecidedWhereOthersMayBeAsLikelyAsThoseThatStay) {
  for (const float below : {5e-13F, 3e-12F}) {
    answer_ = {.ids = {2, 3}, .logits = {0, -below}, .rest = 1};
    const auto kept = ProcessTop(answer_, {.top_p = 0.1}, /*moves=*/{});
    EXPECT_EQ(kept.has_value(), below > 1e-12F);
  }
}

TEST_F(TopSumTest, IsNotDecidedWhereMinPMayCutOthersOrNot) {
  for (const double above : {0.0, 5e-13, 3e-12}) {
    const double min_p = weights_[3] * (1 + above);
    EXPECT_EQ(ProcessTop(answer_, {.min_p = min_p}, /*moves=*/{}).has_value(),
              above > 1e-12);
  }
}

}  // namespace
}  // namespace outrider
