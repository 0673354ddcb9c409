// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/row_weight.h"
#include "core/kernels/cuda/top_rows.h"

// One block takes a row. It finds the key of the last of the greatest logits,
// eight bits at a time, by counting how many keys have which; then each warp
// writes what is above it in its share of the row, in the order of ids.
namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kBits = 8;
constexpr int kBins = 1 << kBits;
constexpr int kLaneBins = kBins / kWarpSize;
constexpr int kLoads = 4;  // logits a thread asks for before it looks at one

// Before `end`; behind it, what is never one of the greatest.
__device__ inline float LogitOf(const TopRow& row, int token, int end) {
  return token < end ? __ldg(row.logits + token) : -INFINITY;
}

// What all threads know of the row's choice.
struct Choice {
  unsigned key;  // the digits found so far, of the last of the greatest
  int num_left;  // how many are still to be found among keys that begin so
};

// A bit for each token: whether it is one of those asked for by themselves.
__device__ inline bool IsMarked(const unsigned* marks, int token) {
  return (marks[token / 32] >> (token % 32) & 1u) != 0;
}

__device__ inline void MarkTokens(const TopRowsArgs& args, const TopRow& row,
                                  unsigned* marks) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i * 32 < row.vocab_size; i += kThreads) marks[i] = 0;
  __syncthreads();
  for (int i = thread; i < row.num_tokens; i += kThreads) {
    const int place = row.first_token + i;
    const int token = args.tokens[place];
    atomicOr(marks + token / 32, 1u << token % 32);
    args.token_logits[place] = __ldg(row.logits + token);
  }
  // Nobody looks at a mark before the barrier of CountDigits.
}

// Counts the keys that begin with choice.key's digits above `shift`, by their
// digit there. What comes one after the other is mostly equal: it is added at
// once.
__device__ inline void CountDigits(const TopRow& row, const unsigned* marks,
                                   unsigned key, int shift, int* counts) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kBins; i += kThreads) counts[i] = 0;
  __syncthreads();
  const int above = shift + kBits;
  int last = 0, num_last = 0;
  for (int first = thread; first < row.vocab_size; first += kLoads * kThreads) {
    float values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      values[i] = LogitOf(row, first + i * kThreads, row.vocab_size);
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int token = first + i * kThreads;
      if (token >= row.vocab_size || IsMarked(marks, token)) continue;
      const unsigned other = KeyOf(values[i]);
      if (above < 32 && (other ^ key) >> above != 0) continue;
      const int digit = static_cast<int>(other >> shift) & (kBins - 1);
      if (digit != last && num_last > 0) {
        atomicAdd(counts + last, num_last);
        num_last = 0;
      }
      last = digit;
      ++num_last;
    }
  }
  if (num_last > 0) atomicAdd(counts + last, num_last);
  __syncthreads();
}

// The next digit of the key: the highest that enough keys reach, or 0. Each
// warp finds it by itself: its lanes have some digits each, the first lane the
// highest.
__device__ inline Choice ChooseDigit(Choice choice, int shift,
                                     const int* counts) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int highest = kBins - 1 - lane * kLaneBins;
  int own = 0;
#pragma unroll 1
  for (int i = 0; i < kLaneBins; ++i) own += counts[highest - i];
  int reached = own;  // by the keys of this lane and of those before it
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const int before = __shfl_sync(kAllLanes, reached, max(lane - distance, 0));
    if (lane >= distance) reached += before;
  }
  const int num_short =
      __popc(__ballot_sync(kAllLanes, reached < choice.num_left));
  const int chosen = min(num_short, kWarpSize - 1);

  int num_left = choice.num_left - (reached - own);
  int digit = highest;
  for (int i = 1; i < kLaneBins && counts[digit] < num_left; ++i) {
    num_left -= counts[digit];
    --digit;
  }
  digit = __shfl_sync(kAllLanes, digit, chosen);
  choice.num_left = __shfl_sync(kAllLanes, num_left, chosen);
  choice.key |= static_cast<unsigned>(digit) << shift;
  return choice;
}

// A warp's part of the row.
struct Share {
  int begin;
  int end;
};
__device__ inline Share ShareOf(const TopRow& row, int warp) {
  const int tiles = (row.vocab_size + kWarpSize - 1) / kWarpSize;
  const int each = (tiles + kWarps - 1) / kWarps * kWarpSize;
  return {min(warp * each, row.vocab_size),
          min((warp + 1) * each, row.vocab_size)};
}

// What a warp has seen of the row: how many keys are above the last one and
// how many equal to it; whether a logit is none; the greatest.
struct Seen {
  int above;
  int equal;
  int is_bad;
  float top;
};

__device__ inline Seen Look(const TopRow& row, const unsigned* marks,
                            unsigned key, int warp, int lane) {
  const Share share = ShareOf(row, warp);
  Seen seen = {0, 0, 0, -INFINITY};
  for (int first = share.begin; first < share.end;
       first += kLoads * kWarpSize) {
    float values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      values[i] = LogitOf(row, first + i * kWarpSize + lane, share.end);
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int token = first + i * kWarpSize + lane;
      const float x = values[i];
      const bool counts = x > -INFINITY && !IsMarked(marks, token);
      const unsigned other = KeyOf(x);
      seen.above += __popc(__ballot_sync(kAllLanes, counts && other > key));
      seen.equal += __popc(__ballot_sync(kAllLanes, counts && other == key));
      if (!(x < INFINITY)) seen.is_bad = 1;
      if (counts) seen.top = fmaxf(seen.top, x);
    }
  }
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    seen.is_bad |= __shfl_xor_sync(kAllLanes, seen.is_bad, distance);
    seen.top = fmaxf(seen.top, __shfl_xor_sync(kAllLanes, seen.top, distance));
  }
  return seen;
}

// Writes the warp's share of the greatest: `above` of them and `equal` keys lie
// in the shares before it. Of equal keys the first `num_left` of the row are
// told. The weight of its others.
__device__ inline double Write(const TopRowsArgs& args, const TopRow& row,
                               const unsigned* marks, const Choice& choice,
                               const Seen& before, float top, int lane,
                               int warp) {
  const Share share = ShareOf(row, warp);
  const unsigned lower_lanes = (1u << lane) - 1u;
  int above = before.above, equal = before.equal;
  double rest = 0.0;
  for (int first = share.begin; first < share.end; first += kWarpSize) {
    const int token = first + lane;
    const bool is_in = token < share.end;
    const float x = is_in ? __ldg(row.logits + token) : -INFINITY;
    const bool counts = is_in && !IsMarked(marks, token) && x > -INFINITY;
    const unsigned other = KeyOf(x);
    const bool is_above = counts && other > choice.key;
    const bool is_equal = counts && other == choice.key;
    const unsigned aboves = __ballot_sync(kAllLanes, is_above);
    const unsigned equals = __ballot_sync(kAllLanes, is_equal);
    const int rank = equal + __popc(equals & lower_lanes);  // among equals
    const bool is_told = is_above || (is_equal && rank < choice.num_left);
    if (is_told) {
      const int place = row.first_top + above + __popc(aboves & lower_lanes) +
                        min(rank, choice.num_left);
      args.ids[place] = token;
      args.logits[place] = x;
    } else if (counts && row.scale > 0.0) {
      rest += RowWeight(x, top, row.scale);
    }
    above += __popc(aboves);
    equal += __popc(equals);
  }
  return WarpSumOfDoubles(rest);
}

// Block x: row x.
__global__ void __launch_bounds__(kThreads, 1) TopRowsKernel(TopRowsArgs args) {
  OUTRIDER_DYNAMIC_SHARED(unsigned, marks);  // a bit for each token
  OUTRIDER_SHARED(int[kBins], counts);
  OUTRIDER_SHARED(Seen[kWarps], seen);
  OUTRIDER_SHARED(double[kWarps], rests);
  const TopRow row = args.rows[blockIdx.x];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  MarkTokens(args, row, marks);

  // All threads choose the same. Where there are fewer than asked for, the key
  // comes out as a masked token's or lower, and all of them are above it.
  Choice choice = {0u, row.num_top};
  for (int shift = 32 - kBits; shift >= 0; shift -= kBits) {
    CountDigits(row, marks, choice.key, shift, counts);
    choice = ChooseDigit(choice, shift, counts);
    __syncthreads();
  }

  const Seen mine = Look(row, marks, choice.key, warp, lane);
  if (lane == 0) seen[warp] = mine;
  __syncthreads();
  Seen before = {0, 0, 0, -INFINITY}, all = before;
  for (int i = 0; i < kWarps; ++i) {
    if (i == warp) before = all;
    all.above += seen[i].above;
    all.equal += seen[i].equal;
    all.is_bad |= seen[i].is_bad;
    all.top = fmaxf(all.top, seen[i].top);
  }
  const double rest =
      Write(args, row, marks, choice, before, all.top, lane, warp);
  if (lane == 0) rests[warp] = rest;
  __syncthreads();
  if (thread != 0) return;
  TopRowResult result;
  result.count = all.above + min(all.equal, choice.num_left);
  result.is_valid = all.is_bad == 0;
  result.rest = 0.0;
  for (int i = 0; i < kWarps; ++i) result.rest += rests[i];
  args.results[blockIdx.x] = result;
}

}  // namespace

void TopRows(const TopRowsArgs& args, Stream stream) {
  const size_t mark_bytes = sizeof(unsigned) * CeilDiv(args.vocab_size, 32);
  Launch(args.num_rows, kThreads, mark_bytes, stream, TopRowsKernel, args);
}

}  // namespace outrider::kernels::cuda
