// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_SCORE_ROWS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_SCORE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/element.h"

namespace outrider::kernels::cuda {

// A token whose logit is moved before it weighs anything.
struct MovedLogit {
  double bias = 0;  // added first
  int token = 0;
  // Less than 0: no more is done to it. Else DrawRow's repetition penalty
  // divides what is positive and multiplies what is not; and where it is more
  // than 0, so many frequency penalties are taken off, and a presence penalty.
  int num_generated = -1;
};

// What the acceptance rule wants to know of one row of logits: how the target
// sees the tokens of a draft's support, the mass off it, and one token.
struct DrawRow {
  const float* logits = nullptr;  // [vocab_size]
  // No more than ScoreRowsArgs::vocab_size. 0: no row, and no result.
  int vocab_size = 0;
  // log2(e) / temperature; 0 for temperature 0, where the argmax has all mass.
  double scale = 0;
  // The support, ascending, is [first_support, first_support + num_support) of
  // ScoreRowsArgs::support.
  int first_support = 0;
  int num_support = 0;
  // Its moved tokens, ascending, in ScoreRowsArgs::moved; not at temperature 0.
  int first_moved = 0;
  int num_moved = 0;
  double repetition_penalty = 1;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  // The coin of the draw off the support, in [0, 1): the host's own.
  double uniform = 0;
  // Or the draw is from the whole row, with the noise that
  // `position` has for each token under `seed` (Coins::Race). No support.
  bool is_coupled = false;
  uint64_t seed = 0;
  uint64_t position = 0;
};

// A token's weight is 2^(scale * (its logit - top)), of logits as they have
// been moved.
struct DrawRowResult {
  float top = 0;   // the greatest logit, rounded where it was moved
  int argmax = 0;  // the lowest of its ids
  // -1 where the mass off the support is 0, and where the row is none: where a
  // logit is NaN or infinite, all are -infinity, or one is moved so far that
  // float32 does not tell by how much.
  int drawn = 0;
  bool is_valid = false;
  float drawn_logit = 0;  // before it is moved; 0 where nothing is drawn
  double tail = 0;        // the weight of all tokens off the support
};

struct ScoreRowsArgs {
  const DrawRow* rows = nullptr;  // [num_rows]
  int num_rows = 0;
  int vocab_size = 0;                 // the most that a row has
  const int* support = nullptr;       // of all rows
  const MovedLogit* moved = nullptr;  // of all rows
  void* scratch = nullptr;            // ScoreRowsScratchBytes, aligned to 16
  float* support_weights = nullptr;   // as long as `support`
  DrawRowResult* answers = nullptr;   // [num_rows]
};

// Rows are cut into chunks, each of which leaves something to the next kernel.
inline constexpr int kScoreChunk = 4096;
inline constexpr size_t kScoreChunkBytes = 40;
inline size_t ScoreRowsScratchBytes(int num_rows, int vocab_size) {
  const int num_chunks = (vocab_size + kScoreChunk - 1) / kScoreChunk;
  return kScoreChunkBytes * static_cast<size_t>(num_rows) *
         static_cast<size_t>(num_chunks);
}

// A token's probability is its weight over (tail + the sum of the support's
// weights). Weights are float32, sums float64 in a fixed order, so that the law
// that answers and weights describe is the softmax's up to a total variation of
// 1.1e-6 (docs/device-rows.md), and an answer depends on its own row alone.
void ScoreRows(const ScoreRowsArgs& args, Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_SCORE_ROWS_H_
