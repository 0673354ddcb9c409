// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_LOOK_H_
#define OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_LOOK_H_

#include <cstdint>

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/top_rows.h"

// Part of top_rows.cu: looks at a whole row by the threads of a block. A look
// takes microseconds, whatever it does, and a row is looked at as seldom as may
// be.
namespace outrider::kernels::cuda {

constexpr int kTopThreads = 1024;

// Logits of four tokens that follow each other, the first a multiple of four:
// wherever the row lies in memory, so that sums of them are the same.
struct Quad {
  float of[4];
};

// Logits of tokens that the row does not have are those of masked ones.
__device__ inline Quad LoadQuad(const TopRow& row, bool is_aligned, int token) {
  Quad quad = {{-INFINITY, -INFINITY, -INFINITY, -INFINITY}};
  if (is_aligned && token + 4 <= row.vocab_size) {
    const float4 x = __ldg(reinterpret_cast<const float4*>(row.logits + token));
    quad = {{x.x, x.y, x.z, x.w}};
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (token + i < row.vocab_size)
        quad.of[i] = __ldg(row.logits + token + i);
    }
  }
  return quad;
}

// Calls `visit` with the thread's quads of the row, of which it asks for
// `kQuadLoads` before it looks at one: whether it is an even or an odd one, its
// first token, and the logits.
template <int kQuadLoads, typename Visit>
__device__ inline void ForEachQuad(const TopRow& row, const Visit& visit) {
  constexpr int kStride = 4 * kTopThreads;
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(row.logits) % sizeof(float4) == 0;
  int first = 4 * static_cast<int>(threadIdx.x);
  for (; first < row.vocab_size; first += kQuadLoads * kStride) {
    Quad quads[kQuadLoads];
#pragma unroll
    for (int i = 0; i < kQuadLoads; ++i) {
      quads[i] = LoadQuad(row, is_aligned, first + i * kStride);
    }
#pragma unroll
    for (int i = 0; i < kQuadLoads; ++i) {
      visit(i % 2, first + i * kStride, quads[i]);
    }
  }
}

// A bit for each token: whether it is one of those asked for by themselves.
__device__ inline bool IsMarked(const unsigned* marks, int token) {
  return (marks[token / 32] >> (token % 32) & 1u) != 0;
}

// The quad, in which tokens that do not count are masked.
__device__ inline Quad Counted(const TopRow& row, const unsigned* marks,
                               int token, Quad quad) {
  if (row.num_tokens == 0 || token >= row.vocab_size) return quad;
  const unsigned marked = marks[token / 32] >> (token % 32);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if ((marked >> i & 1u) != 0) quad.of[i] = -INFINITY;
  }
  return quad;
}

// No logit of the quad is NaN or +infinity.
__device__ inline bool IsValid(const Quad& quad) {
  return quad.of[0] < INFINITY && quad.of[1] < INFINITY &&
         quad.of[2] < INFINITY && quad.of[3] < INFINITY;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_LOOK_H_
