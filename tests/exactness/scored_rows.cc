// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/scored_rows.h"

#include <numeric>

#include "core/base/check.h"
#include "core/cuda_model/device_question.h"
#include "core/kernels/cuda/device_array.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/cut_logits.h"
#include "core/sampling/process.h"

namespace outrider::testing {

std::vector<Answer> Ask(const std::vector<Question>& questions) {
  const size_t vocab_size = questions[0].logits.size();
  std::vector<float> logits;
  std::vector<int> support;
  std::vector<kernels::cuda::MovedLogit> moved;
  for (const Question& question : questions) {
    logits.insert(logits.end(), question.logits.begin(), question.logits.end());
    support.insert(support.end(), question.support.begin(),
                   question.support.end());
    for (const MovedToken& token : question.moves.tokens) {
      moved.push_back(MovedLogitOf(token));
    }
  }
  const kernels::cuda::DeviceArray<float> device_logits(logits);
  std::vector<kernels::cuda::DrawRow> rows;
  int first_support = 0, first_moved = 0;
  for (const Question& question : questions) {
    const int num_support = static_cast<int>(question.support.size());
    const LogitMoves& moves = question.moves;
    const int num_moved = static_cast<int>(moves.tokens.size());
    rows.push_back({.logits = device_logits.data() + rows.size() * vocab_size,
                    .vocab_size = static_cast<int>(vocab_size),
                    .scale = ScaleOf(question.temperature),
                    .first_support = first_support,
                    .num_support = num_support,
                    .first_moved = first_moved,
                    .num_moved = num_moved,
                    .repetition_penalty = moves.repetition_penalty,
                    .frequency_penalty = moves.frequency_penalty,
                    .presence_penalty = moves.presence_penalty,
                    .uniform = question.uniform,
                    .is_coupled = question.is_coupled,
                    .seed = question.seed,
                    .position = question.position});
    first_support += num_support;
    first_moved += num_moved;
  }
  const int num_rows = static_cast<int>(rows.size());
  const int num_tokens = static_cast<int>(vocab_size);
  const kernels::cuda::DeviceArray<kernels::cuda::DrawRow> device_rows(rows);
  const kernels::cuda::DeviceArray<int> device_support(support);
  const kernels::cuda::DeviceArray<kernels::cuda::MovedLogit> device_moved(
      moved);
  const kernels::cuda::DeviceArray<float> device_weights(support.size());
  const kernels::cuda::DeviceArray<kernels::cuda::DrawRowResult> device_answers(
      rows.size());
  const kernels::cuda::DeviceArray<unsigned char> scratch(
      kernels::cuda::ScoreRowsScratchBytes(num_rows, num_tokens));
  kernels::cuda::ScoreRows({.rows = device_rows.data(),
                            .num_rows = num_rows,
                            .vocab_size = num_tokens,
                            .support = device_support.data(),
                            .moved = device_moved.data(),
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

std::vector<double> MovedRow(const Question& question) {
  std::vector<double> row(question.logits.begin(), question.logits.end());
  for (const MovedToken& moved : question.moves.tokens) {
    row[moved.token] = MovedLogit(question.moves, moved, row[moved.token]);
  }
  return row;
}

Distribution OnHost(const Question& question) {
  if (question.temperature > 0) {
    return CutLogits(absl::MakeConstSpan(MovedRow(question)),
                     {.temperature = question.temperature});
  }
  OUTRIDER_CHECK(question.moves.tokens.empty());
  return *Process(question.logits, {.temperature = question.temperature}, {});
}

}  // namespace outrider::testing
