// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_ATTENTION_H_
#define OUTRIDER_CORE_KERNELS_ATTENTION_H_

#include "core/kernels/bfloat16.h"
#include "core/kernels/dispatch.h"

namespace outrider::kernels {

// The new rows of one session over its cache, which already holds their keys
// and values. num_heads is a multiple of num_kv_heads; consecutive heads share
// one of keys and values.
struct AttentionArgs {
  const float* queries = nullptr;  // [num_rows, num_heads, head_dim]
  int query_stride = 0;            // elements from one row to the next
  ConstElements keys = {};    // [>= first_position + num_rows, num_kv_heads,
  ConstElements values = {};  //  head_dim], contiguous; both of one type
  int num_rows = 0;
  int first_position = 0;  // of row 0; row i stands at first_position + i
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int window = 0;        // keys a row sees, its own included; 0: all
  float scale = 1.0f;    // of q . k, before the softmax
  float* out = nullptr;  // [num_rows, num_heads, head_dim], contiguous
};

// The row at position p attends over exactly the keys of positions
// [max(0, p - window + 1), p]; all arithmetic is float32. A row of `out`
// depends, bit for bit, on its own query and its own keys only. Uses scratch
// memory of the calling thread, at most 16 x (num_heads / num_kv_heads) scores
// for each key.
void Attention(const AttentionArgs& args, Level level = BestLevel());

// Copies rows into a cache, rounding to its type.
struct StoreKvArgs {
  const float* from = nullptr;  // [num_rows, row_size]
  int from_stride = 0;          // elements from one row to the next
  int num_rows = 0;
  int row_size = 0;  // num_kv_heads * head_dim
  Elements to = {};  // [num_rows, row_size]: where the first row's place is
};
void StoreKv(const StoreKvArgs& args, Level level = BestLevel());

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_ATTENTION_H_
