// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_BLOCK_H_
#define OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_BLOCK_H_

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/top_rows_look.h"

// Part of top_rows.cu: what the threads of a block tell each other.
namespace outrider::kernels::cuda {

constexpr int kTopWarps = kTopThreads / kWarpSize;
// A lane looks after what a warp has found.
static_assert(kTopWarps == kWarpSize);
constexpr int kBits = 11;
constexpr int kBins = 1 << kBits;
static_assert(kBins == 2 * kTopThreads);  // a thread looks after two

// What each warp has found, in shared memory.
struct BlockScratch {
  int* counts;  // [kBins], for the block
  int* groups;  // of these
  float* tops;
  float* bottoms;
  float* bounds;
  int* bads;
  int* aboves;
  int* equals;
  double* rests;
  double* masses;
};

// The greatest of the warp's lanes, known to all.
__device__ inline float WarpMax(float x) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, distance));
  }
  return x;
}

// The greatest over the block's threads, known to all; one barrier.
__device__ inline float BlockMax(float x, float* warps) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  x = WarpMax(x);
  if (lane == 0) warps[threadIdx.x / kWarpSize] = x;
  __syncthreads();
  return WarpMax(warps[lane]);
}

// The sum of the values of the warp's lanes up to this one.
__device__ inline int SumUpTo(int x, int lane) {
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const int before = __shfl_sync(kAllLanes, x, max(lane - distance, 0));
    if (lane >= distance) x += before;
  }
  return x;
}

// A lane, and how many of what is looked for it has itself.
struct Found {
  int lane;
  int num_left;
};

// The first lane by which `wanted` are reached, or the last one.
__device__ inline Found FindLane(int own, int wanted, int lane) {
  const int reached = SumUpTo(own, lane);
  const int num_short = __popc(__ballot_sync(kAllLanes, reached < wanted));
  const int chosen = min(num_short, kWarpSize - 1);
  const int num_left = wanted - (reached - own);
  return {chosen, __shfl_sync(kAllLanes, num_left, chosen)};
}

// The highest digit that so many of what is counted reach, or 0, and how many
// of these have that digit itself. The counts are free when it returns.
struct Digit {
  int value;
  int num_left;
};

__device__ inline Digit ChooseDigit(int wanted, const BlockScratch& scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const int* counts = scratch.counts;
  const int own = kBins - 1 - 2 * thread;
  const int reached = SumUpTo(counts[own] + counts[own - 1], lane);
  if (lane == kWarpSize - 1) scratch.groups[warp] = reached;
  __syncthreads();
  // Each warp comes to the same choice.
  const Found group = FindLane(scratch.groups[lane], wanted, lane);
  const int highest = kBins - 1 - 2 * kWarpSize * group.lane;
  const int higher = counts[highest - 2 * lane];
  const int lower = counts[highest - 2 * lane - 1];
  const Found pair = FindLane(higher + lower, group.num_left, lane);
  const int before = __shfl_sync(kAllLanes, higher, pair.lane);
  Digit digit = {highest - 2 * pair.lane, pair.num_left};
  if (before < digit.num_left) {
    --digit.value;
    digit.num_left -= before;
  }
  __syncthreads();
  return digit;
}

__device__ inline void ClearCounts(int* counts) {
  const int thread = static_cast<int>(threadIdx.x);
  counts[thread] = counts[thread + kTopThreads] = 0;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_BLOCK_H_
