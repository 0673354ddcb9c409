// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_OUTLINE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_OUTLINE_H_

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/top_rows.h"
#include "core/kernels/cuda/top_rows_block.h"
#include "core/kernels/cuda/top_rows_look.h"

// Part of top_rows.cu: what a first look tells of a row.
namespace outrider::kernels::cuda {

constexpr int kPeaks = 8;  // groups of a thread

// The greatest logits of a thread's groups of tokens.
struct Peaks {
  float of[kPeaks];
  bool is_valid;  // none is NaN or +infinity
};

__device__ inline Peaks LookForPeaks(const TopRow& row, const unsigned* marks) {
  Peaks peaks;
  peaks.is_valid = true;
#pragma unroll
  for (int i = 0; i < kPeaks; ++i) peaks.of[i] = -INFINITY;
  ForEachQuad<4>(row, [&](int odd, int token, const Quad& quad) {
    if (!IsValid(quad)) peaks.is_valid = false;
    const Quad x = Counted(row, marks, token, quad);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      peaks.of[4 * odd + i] = fmaxf(peaks.of[4 * odd + i], x.of[i]);
    }
  });
  return peaks;
}

// What the block knows of its row after one look.
struct Outline {
  float top;    // the greatest logit that counts
  float bound;  // so many as are asked for are here or above, or all
  bool is_valid;
};

// The bound is the least of the peaks that have a digit or a higher one, of
// 2048 that are equally wide.
__device__ inline Outline OutlineOf(const Peaks& peaks, int num_top,
                                    const BlockScratch& scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  constexpr float kHighest = kBins - 1, kLowest = -3.4028234663852886e38f;
  float top = -INFINITY, less_bottom = -INFINITY;
#pragma unroll
  for (int i = 0; i < kPeaks; ++i) {
    top = fmaxf(top, peaks.of[i]);
    if (peaks.of[i] > -INFINITY) less_bottom = fmaxf(less_bottom, -peaks.of[i]);
  }
  const unsigned bads = __ballot_sync(kAllLanes, !peaks.is_valid);
  if (lane == 0) scratch.bads[warp] = bads != 0 ? 1 : 0;
  ClearCounts(scratch.counts);
  top = BlockMax(top, scratch.tops);
  less_bottom = BlockMax(less_bottom, scratch.bottoms);
  const float steepness = kHighest / (top + less_bottom);
  int digits[kPeaks];
#pragma unroll
  for (int i = 0; i < kPeaks; ++i) {
    digits[i] = -1;
    if (!(peaks.of[i] > -INFINITY)) continue;
    // What is no number, as where all peaks are equal, is a digit as well.
    const float place = (peaks.of[i] + less_bottom) * steepness;
    digits[i] = static_cast<int>(fminf(place, kHighest));
    atomicAdd(scratch.counts + digits[i], 1);
  }
  __syncthreads();
  const int chosen = ChooseDigit(num_top, scratch).value;
  float less_bound = -INFINITY;
#pragma unroll
  for (int i = 0; i < kPeaks; ++i) {
    if (digits[i] >= chosen) less_bound = fmaxf(less_bound, -peaks.of[i]);
  }
  less_bound = BlockMax(less_bound, scratch.bounds);
  // The lowest digit is chosen where the peaks are too few.
  const float bound = chosen == 0 ? kLowest : -less_bound;
  const unsigned all_bads = __ballot_sync(kAllLanes, scratch.bads[lane] != 0);
  return {top, bound, all_bads == 0};
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_OUTLINE_H_
