// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_CANDIDATES_H_
#define OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_CANDIDATES_H_

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/top_rows.h"
#include "core/kernels/cuda/top_rows_look.h"

// Part of top_rows.cu: which logits may be among the greatest, and in what
// order they come.
namespace outrider::kernels::cuda {

constexpr int kTopWarps = kTopThreads / kWarpSize;
// A lane looks after what a warp has found.
static_assert(kTopWarps == kWarpSize);
constexpr int kBits = 11;
constexpr int kBins = 1 << kBits;
static_assert(kBins == 2 * kTopThreads);  // a thread looks after two
// Of 128 thousand logits 1100 are candidates where 1024 are asked for, unless
// the greatest ones keep to few groups.
constexpr int kMostCandidates = 2 * kTopThreads;
constexpr int kPeaks = 8;  // groups of a thread

// In shared memory, for each warp what it has found.
struct Scratch {
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

// The candidates, in shared memory.
struct Candidates {
  int* tokens;    // [kMostCandidates]
  float* logits;  // [kMostCandidates]
  int* size;      // those that found no place included
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

__device__ inline Digit ChooseDigit(int wanted, const Scratch& scratch) {
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
                                    const Scratch& scratch) {
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
  // As the lowest digit is chosen where the peaks are too few.
  const float bound = chosen == 0 ? kLowest : -less_bound;
  const unsigned all_bads = __ballot_sync(kAllLanes, scratch.bads[lane] != 0);
  return {top, bound, all_bads == 0};
}

// Puts the list into the order of ids. Nobody looks at marks any more: their
// place is taken by a bit for each candidate.
__device__ inline void Order(int vocab_size, unsigned* marks,
                             const Scratch& scratch,
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
