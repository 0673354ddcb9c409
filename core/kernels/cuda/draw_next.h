// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_DRAW_NEXT_H_
#define OUTRIDER_CORE_KERNELS_CUDA_DRAW_NEXT_H_

#include <cstdint>

#include "core/kernels/cuda/attention.h"
#include "core/kernels/cuda/element.h"
#include "core/kernels/cuda/top_rows.h"

namespace outrider::kernels::cuda {

// How a session's tokens are drawn from the greatest logits of its rows: as
// NextDraw in core/base/row_question.h says. It changes from step to step.
struct DrawSession {
  // The part that others have in the row's weight counts for top_p.
  bool has_rest = false;
  double min_p = 0;
  double top_p = 1;
  int support_size = 1;
  double support_mass = 1;
  bool round_weights = false;
  double min_probability = 0;  // above 0, rows tell their mass
  double probability = 1;
  bool is_coupled = false;
  uint64_t seed = 0;
  uint64_t generation = 0;
  uint64_t position = 0;  // of the next token
  int next_record = 0;
  int num_left = 0;  // rows to come; a token is drawn from each but the last
};

// One row of a session's.
struct DrawnRow {
  TopRowResult found = {};
  int token = -1;  // drawn from it; -1: none is, and no row follows
};

struct DrawNextArgs {
  DrawSession* sessions = nullptr;  // [num_sessions]
  int num_sessions = 0;
  // The row of each session, and what TopRows found of it. They name no tokens;
  // at most kMaxDrawnTop are asked for.
  TopRow* rows = nullptr;
  const TopRowResult* found = nullptr;
  const int* ids = nullptr;
  const float* top_logits = nullptr;
  DrawnRow* records = nullptr;

  // The step that comes next: of each session one row, with so many tiles.
  int* tokens = nullptr;
  int* positions = nullptr;
  int* blocks = nullptr;
  AttentionTile* tiles = nullptr;
  int num_tiles = 1;
  const int* tables = nullptr;
  int spare_block = 0;  // where rows that nobody asked for are written
  const float* logits = nullptr;  // [num_sessions, vocab_size]: that it leaves
  int vocab_size = 0;
};

inline constexpr int kMaxDrawnTop = 1024;

// Records what was found of each session's row, draws a token from it, and puts
// that at its place in the step that comes next, whose row is the next one. A
// session that has no row left is as padding to the step.
void DrawNext(const DrawNextArgs& args, Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_DRAW_NEXT_H_
