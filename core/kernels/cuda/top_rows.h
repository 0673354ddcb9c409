// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_H_

#include "core/kernels/cuda/element.h"

namespace outrider::kernels::cuda {

// What is asked for of one row of logits: the greatest ones, and those of some
// tokens, which count neither among them nor among the others.
struct TopRow {
  const float* logits = nullptr;  // [vocab_size]
  int vocab_size = 0;             // 0: no row, and no result
  // log2(e) / temperature; 0: nobody asks for TopRowResult::rest.
  double scale = 0;
  // The tokens, ascending, are [first_token, first_token + num_tokens) of
  // TopRowsArgs::tokens.
  int first_token = 0;
  int num_tokens = 0;
  // The greatest go to [first_top, first_top + num_top) of TopRowsArgs::ids.
  int first_top = 0;
  int num_top = 0;          // at least 1
  bool wants_mass = false;  // TopRowResult::mass
};

struct TopRowResult {
  int count = 0;  // of the greatest: fewer than num_top where others are -inf
  bool is_valid = false;  // no logit of the row is NaN or +infinity
  // The weight of those that were not told: 2^(scale * (logit - the greatest of
  // those that were)). Weights and sums of four are float32, their sum is
  // float64 in a fixed order.
  double rest = 0;
  // If asked for: the weight of all at temperature 1, where the greatest has 1.
  // Tokens that are asked for by themselves do not count.
  double mass = 0;
};

struct TopRowsArgs {
  const TopRow* rows = nullptr;  // [num_rows]
  int num_rows = 0;
  int vocab_size = 0;  // the most that a row has, up to kMaxTopVocabulary
  const int* tokens = nullptr;
  float* token_logits = nullptr;    // as long as `tokens`
  int* ids = nullptr;               // of each row, ascending
  float* logits = nullptr;          // of these
  TopRowResult* results = nullptr;  // [num_rows]
};

inline constexpr int kMaxTopVocabulary = 1 << 19;

// Ties go to the lowest id. A result depends on its own row alone.
void TopRows(const TopRowsArgs& args, Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_H_
