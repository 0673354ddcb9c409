// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_SCORED_ROWS_H_
#define OUTRIDER_TESTS_EXACTNESS_SCORED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/token.h"
#include "core/cuda_model/device_question.h"
#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/score_rows.h"
#include "core/kernels/random_values.h"
#include "core/sampling/process.h"

// Rows of logits as core/kernels/cuda scores them, asked for and answered in
// the terms of the sampler.
namespace outrider::testing {

// docs/algorithm.md: what float32 weights may change of a law.
inline constexpr double kTotalVariation = 1e-6;

// A question as a test asks it.
struct Question {
  std::vector<float> logits = {};
  double temperature = 1.0;
  std::vector<TokenId> support = {};
  double uniform = 0;
  bool is_coupled = false;
  uint64_t seed = 0;
  uint64_t position = 0;
};

struct Answer {
  kernels::cuda::DrawRowResult row = {};
  std::vector<double> p = {};  // over the support
  double tail_mass = 0;
};

// All questions in one pass; their rows are equally long.
inline std::vector<Answer> Ask(const std::vector<Question>& questions) {
  const size_t vocab_size = questions[0].logits.size();
  std::vector<float> logits;
  std::vector<int> support;
  for (const Question& question : questions) {
    logits.insert(logits.end(), question.logits.begin(), question.logits.end());
    support.insert(support.end(), question.support.begin(),
                   question.support.end());
  }
  const kernels::cuda::DeviceArray<float> device_logits(logits);
  std::vector<kernels::cuda::DrawRow> rows;
  int first_support = 0;
  for (const Question& question : questions) {
    const int num_support = static_cast<int>(question.support.size());
    rows.push_back({.logits = device_logits.data() + rows.size() * vocab_size,
                    .vocab_size = static_cast<int>(vocab_size),
                    .scale = ScaleOf(question.temperature),
                    .first_support = first_support,
                    .num_support = num_support,
                    .uniform = question.uniform,
                    .is_coupled = question.is_coupled,
                    .seed = question.seed,
                    .position = question.position});
    first_support += num_support;
  }
  const int num_rows = static_cast<int>(rows.size());
  const int num_tokens = static_cast<int>(vocab_size);
  const kernels::cuda::DeviceArray<kernels::cuda::DrawRow> device_rows(rows);
  const kernels::cuda::DeviceArray<int> device_support(support);
  const kernels::cuda::DeviceArray<float> device_weights(support.size());
  const kernels::cuda::DeviceArray<kernels::cuda::DrawRowResult> device_answers(
      rows.size());
  const kernels::cuda::DeviceArray<unsigned char> scratch(
      kernels::cuda::ScoreRowsScratchBytes(num_rows, num_tokens));
  kernels::cuda::ScoreRows({.rows = device_rows.data(),
                            .num_rows = num_rows,
                            .vocab_size = num_tokens,
                            .support = device_support.data(),
                            .scratch = scratch.data(),
                            .support_weights = device_weights.data(),
                            .answers = device_answers.data()},
                           nullptr);
  const std::vector<kernels::cuda::DrawRowResult> read = device_answers.Read();
  const std::vector<float> weights = device_weights.Read();
  std::vector<Answer> answers;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto begin = weights.begin() + rows[i].first_support;
    const auto end = begin + rows[i].num_support;
    const double total = std::accumulate(begin, end, read[i].tail);
    Answer answer = {.row = read[i], .tail_mass = read[i].tail / total};
    for (auto weight = begin; weight != end; ++weight) {
      answer.p.push_back(*weight / total);
    }
    answers.push_back(answer);
  }
  return answers;
}

inline Distribution OnHost(const Question& question) {
  return *Process(question.logits, {.temperature = question.temperature}, {});
}

// What an order of threads adds to the seeds of its test's data.
inline uint32_t DataOfOrder(uint64_t order) {
  return 1000 * (static_cast<uint32_t>(order) - 1);
}

// Logits of a row, more uneven where the spread is wide.
inline std::vector<float> Logits(int vocab_size, uint32_t seed, float spread) {
  std::vector<float> logits = kernels::RandomValues(vocab_size, seed);
  for (float& x : logits) x *= spread;
  return logits;
}

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_SCORED_ROWS_H_
