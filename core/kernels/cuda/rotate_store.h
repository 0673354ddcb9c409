// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_ROTATE_STORE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_ROTATE_STORE_H_

#include "core/kernels/cuda/element.h"

namespace outrider::kernels::cuda {

// Positions a block of KV memory holds: kKvBlockLength of core/base/kv_block.h,
// which is C++20 to nvcc's 17; the tests hold one against the other.
constexpr int kBlockLength = 16;

// Keys and values of one layer, [num_blocks, num_kv_heads, kBlockLength,
// head_dim] each: what one head has of one block is consecutive.
struct KvLayer {
  void* keys = nullptr;
  void* values = nullptr;
};

// Which heads there are; num_heads is a multiple of num_kv_heads.
struct Heads {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;  // a multiple of 8, at most 128
};

struct RotateStoreArgs {
  Element element = Element::kBFloat16;  // of queries, keys and values
  Heads heads = {};
  // [num_rows, num_heads + 2 * num_kv_heads, head_dim]: queries, keys, values.
  const float* qkv = nullptr;
  int num_rows = 0;
  const int* positions = nullptr;  // [num_rows]
  // [num_rows]: the block in which the row's keys and values belong.
  const int* blocks = nullptr;
  const float* query_norm = nullptr;  // [head_dim] of an RMS norm of each head,
  const float* key_norm = nullptr;    // or null
  float epsilon = 0.0f;               // of those norms
  // [context_length, head_dim / 2] each; null: nothing is turned.
  const float* cos = nullptr;
  const float* sin = nullptr;
  void* queries = nullptr;  // [num_rows, num_heads, head_dim]
  KvLayer kv = {};
};

// Normalises and turns queries and keys (Llama's "rotate half"), rounds them,
// and puts keys and values where they belong.
//
// A value that is not finite is stored as 0, and a key of NaN beside it: so
// every row that sees the position comes out as NaN, and the weight 0 of a row
// that does not see it makes 0 of it (attention.h).
void RotateStore(const RotateStoreArgs& args, Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_ROTATE_STORE_H_
