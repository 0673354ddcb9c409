// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_CANDIDATES_H_
#define OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_CANDIDATES_H_

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/top_rows_block.h"
#include "core/kernels/cuda/top_rows_look.h"

// Part of top_rows.cu: logits that may be among the greatest.
namespace outrider::kernels::cuda {

// Of 128 thousand logits 1100 are candidates where 1024 are asked for, unless
// the greatest ones keep to few groups.
constexpr int kMostCandidates = 2 * kTopThreads;

// The candidates, in shared memory.
struct Candidates {
  int* tokens;    // [kMostCandidates]
  float* logits;  // [kMostCandidates]
  int* size;      // those that found no place included
};

// Puts the list into the order of ids. Nobody looks at marks any more: their
// place is taken by a bit for each candidate.
__device__ inline void Order(int vocab_size, unsigned* marks,
                             const BlockScratch& scratch,
                             const Candidates& candidates, int size) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const int num_words = (vocab_size + 31) / 32;
  const int each =
      (num_words + kTopThreads - 1) / kTopThreads;  // words of a thread
  for (int i = thread; i < num_words; i += kTopThreads) marks[i] = 0;
  __syncthreads();
  int tokens[2] = {0, 0};
  float logits[2] = {0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int at = thread + i * kTopThreads;
    if (at >= size) continue;
    tokens[i] = candidates.tokens[at];
    logits[i] = candidates.logits[at];
    atomicOr(marks + tokens[i] / 32, 1u << tokens[i] % 32);
  }
  __syncthreads();
  int own = 0;
  for (int i = thread * each; i < min((thread + 1) * each, num_words); ++i) {
    own += __popc(marks[i]);
  }
  const int reached = SumUpTo(own, lane);
  scratch.counts[thread] = reached - own;  // before it, in its warp's words
  if (lane == kWarpSize - 1) scratch.groups[warp] = reached;
  __syncthreads();
  const int of_warp = scratch.groups[lane];
  const int before_warp = SumUpTo(of_warp, lane) - of_warp;
  if (warp == 0) scratch.aboves[lane] = before_warp;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (thread + i * kTopThreads >= size) continue;
    const int word = tokens[i] / 32, owner = word / each;
    int rank = scratch.counts[owner] + scratch.aboves[owner / kWarpSize];
    for (int j = owner * each; j < word; ++j) rank += __popc(marks[j]);
    rank += __popc(marks[word] & ((1u << tokens[i] % 32) - 1u));
    candidates.tokens[rank] = tokens[i];
    candidates.logits[rank] = logits[i];
  }
  __syncthreads();
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_CANDIDATES_H_
