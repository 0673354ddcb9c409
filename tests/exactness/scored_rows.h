// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_SCORED_ROWS_H_
#define OUTRIDER_TESTS_EXACTNESS_SCORED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/logit_moves.h"
#include "core/base/token.h"
#include "core/kernels/cuda/score_rows.h"
#include "core/kernels/random_values.h"
#include "core/sampling/distribution.h"

// Rows of logits as core/kernels/cuda scores them, asked for and answered in
// the terms of the sampler.
namespace outrider::testing {

// docs/device-rows.md: what float32 weights may change of a law.
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
  LogitMoves moves = {};
};

struct Answer {
  kernels::cuda::DrawRowResult row = {};
  std::vector<double> p = {};  // over the support
  double tail_mass = 0;
};

// All questions in one pass; their rows are equally long.
std::vector<Answer> Ask(const std::vector<Question>& questions);

// The row as the question's bias and penalties leave it, and its distribution.
std::vector<double> MovedRow(const Question& question);
Distribution OnHost(const Question& question);

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
