// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/asked_top_rows.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <variant>

#include "core/cuda_model/device_question.h"
#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/testing/answer_on_host.h"
#include "tests/exactness/scored_rows.h"

namespace outrider::testing {
namespace {

using kernels::cuda::DeviceArray;
using kernels::cuda::TopRow;
using kernels::cuda::TopRowResult;

// docs/device-rows.md: what float32 weights may change of a sum of them.
constexpr double kRestTolerance = 1e-5;

}  // namespace

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

DeviceTopRowsTest::DeviceTopRowsTest() {
  kernels::cuda::emulation::SetSeed(GetParam());
}

std::vector<float> DeviceTopRowsTest::TopLogits(int size, uint32_t seed,
                                                float spread) {
  return Logits(size, seed + DataOfOrder(GetParam()), spread);
}

}  // namespace outrider::testing
