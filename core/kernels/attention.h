// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_ATTENTION_H_
#define OUTRIDER_CORE_KERNELS_ATTENTION_H_

#include "absl/types/span.h"
#include "core/base/kv_block.h"
#include "core/kernels/bfloat16.h"
#include "core/kernels/execution.h"

namespace outrider::kernels {

// Consecutive rows of a pass that belong to one session: row i of them stands
// at first_position + i.
struct KvSegment {
  const KvBlockId* blocks = nullptr;  // block of position p: p / kKvBlockLength
  int first_position = 0;
  int num_rows = 0;
};

// The rows of a pass over one layer's keys and values, which the blocks already
// hold. num_heads is a multiple of num_kv_heads; consecutive heads share one of
// keys and values.
struct AttentionArgs {
  absl::Span<const KvSegment> segments = {};  // in the order of the rows
  const float* queries = nullptr;             // [rows, num_heads, head_dim]
  int query_stride = 0;       // elements from one row to the next
  ConstElements keys = {};    // [blocks, kKvBlockLength, num_kv_heads,
  ConstElements values = {};  //  head_dim], contiguous; both of one type
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int window = 0;        // keys a row sees, its own included; 0: all
  float scale = 1.0f;    // of q . k, before the softmax
  float* out = nullptr;  // [rows, num_heads, head_dim], contiguous
};

// The row at position p attends over exactly the keys of its own session's
// positions [max(0, p - window + 1), p]; all arithmetic is float32. A row of
// `out` depends, bit for bit, on its own query and its own keys only: neither
// on the rows beside it nor on which blocks hold the keys. Uses scratch memory
// of the calling thread, at most 16 x (num_heads / num_kv_heads) scores for
// each key.
void Attention(const AttentionArgs& args, const Execution& execution);

// Copies the rows' keys, or their values, to their positions in one layer's
// blocks, rounding to their type.
struct StoreKvArgs {
  absl::Span<const KvSegment> segments = {};  // in the order of the rows
  const float* from = nullptr;                // [rows, row_size]
  int from_stride = 0;  // elements from one row to the next
  int row_size = 0;     // num_kv_heads * head_dim
  Elements to = {};     // [blocks, kKvBlockLength, row_size]
};
void StoreKv(const StoreKvArgs& args, const Execution& execution);

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_ATTENTION_H_
