// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "core/sampling/adjust_logits.h"
#include "core/sampling/ask_rows.h"
#include "core/sampling/coins.h"
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

}  // namespace
}  // namespace outrider
