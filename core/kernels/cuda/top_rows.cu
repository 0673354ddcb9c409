// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/row_weight.h"
#include "core/kernels/cuda/top_rows.h"

// One block takes a row. It finds the key of the last of the greatest logits,
// eleven bits at a time, by counting how many keys have which; then each warp
// writes what is above it in its share of the row, in the order of ids. The
// greatest alone, which greedy decoding asks for, takes one look at the row.
namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kBits = 11;
constexpr int kBins = 1 << kBits;
constexpr int kLaneBins = kBins / kWarpSize;
// Lanes that look at a bin each, kLaneBins apart, look into different banks.
constexpr int kPlaces = kBins + kBins / kLaneBins;
constexpr int kLoads = 4;  // logits a thread asks for before it looks at one

// Tokens of the row.
struct Share {
  int begin;
  int end;
};

// Calls `visit` with the share's tokens from its `place`-th on, kStride apart,
// and their logits, of which it asks for kLoads before it looks at one. Every
// place takes as many turns: beyond the share with a logit that is never one of
// the greatest.
template <int kStride, typename Visit>
__device__ inline void ForEachLogit(const TopRow& row, const Share& share,
                                    int place, const Visit& visit) {
  for (int first = share.begin; first < share.end; first += kLoads * kStride) {
    float values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int token = first + i * kStride + place;
      values[i] = token < share.end ? __ldg(row.logits + token) : -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      visit(first + i * kStride + place, values[i]);
    }
  }
}

// The same of the whole row, for the block's threads.
template <typename Visit>
__device__ inline void ForEachLogitOfRow(const TopRow& row,
                                         const Visit& visit) {
  ForEachLogit<kThreads>(row, {0, row.vocab_size},
                         static_cast<int>(threadIdx.x), visit);
}

// What all threads know of the row's choice.
struct Choice {
  unsigned key;  // the bits found so far, of the last of the greatest
  int num_left;  // how many are still to be found among keys that begin so
};

// Bits [low, high) of a key.
struct Digit {
  int low;
  int high;
};

__device__ inline int PlaceOf(int bin) { return bin + bin / kLaneBins; }

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
  __syncthreads();
}

// Counts the keys that have `key`'s bits above the digit, by their own digit.
// What comes one after the other is mostly equal: it is added at once.
__device__ inline void CountDigits(const TopRow& row, const unsigned* marks,
                                   unsigned key, Digit at, int* counts) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kPlaces; i += kThreads) counts[i] = 0;
  __syncthreads();
  const unsigned mask = (1u << (at.high - at.low)) - 1u;
  int last = 0, num_last = 0;
  ForEachLogitOfRow(row, [&](int token, float x) {
    if (token >= row.vocab_size || IsMarked(marks, token)) return;
    const unsigned other = KeyOf(x);
    if (at.high < 32 && (other ^ key) >> at.high != 0) return;
    const int digit = static_cast<int>(other >> at.low & mask);
    if (digit != last && num_last > 0) {
      atomicAdd(counts + PlaceOf(last), num_last);
      num_last = 0;
    }
    last = digit;
    ++num_last;
  });
  if (num_last > 0) atomicAdd(counts + PlaceOf(last), num_last);
  __syncthreads();
}

// The next digit of the key: the highest that enough keys reach, or 0. A warp
// finds it: its lanes have some digits each, the first lane the highest.
__device__ inline Choice ChooseDigit(Choice choice, Digit at,
                                     const int* counts) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int highest = kBins - 1 - lane * kLaneBins;
  int own = 0;
#pragma unroll 8
  for (int i = 0; i < kLaneBins; ++i) own += counts[PlaceOf(highest - i)];
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
  for (int i = 1; i < kLaneBins && counts[PlaceOf(digit)] < num_left; ++i) {
    num_left -= counts[PlaceOf(digit)];
    --digit;
  }
  digit = __shfl_sync(kAllLanes, digit, chosen);
  choice.num_left = __shfl_sync(kAllLanes, num_left, chosen);
  choice.key |= static_cast<unsigned>(digit) << at.low;
  return choice;
}

// A warp's part of the row.
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
  Seen seen = {0, 0, 0, -INFINITY};
  ForEachLogit<kWarpSize>(
      row, ShareOf(row, warp), lane, [&](int token, float x) {
        const bool counts = x > -INFINITY && !IsMarked(marks, token);
        const unsigned other = KeyOf(x);
        seen.above += __popc(__ballot_sync(kAllLanes, counts && other > key));
        seen.equal += __popc(__ballot_sync(kAllLanes, counts && other == key));
        if (!(x < INFINITY)) seen.is_bad = 1;
        if (counts) seen.top = fmaxf(seen.top, x);
      });
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    seen.is_bad |= __shfl_xor_sync(kAllLanes, seen.is_bad, distance);
    seen.top = fmaxf(seen.top, __shfl_xor_sync(kAllLanes, seen.top, distance));
  }
  return seen;
}

// Writes the warp's share of the greatest: `above` of them and `equal` keys lie
// in the shares before it. Of equal keys the first `num_left` of the row are
// told. The weight of the lane's others.
__device__ inline double Write(const TopRowsArgs& args, const TopRow& row,
                               const unsigned* marks, const Choice& choice,
                               const Seen& before, float top, int lane,
                               int warp) {
  const unsigned lower_lanes = (1u << lane) - 1u;
  int above = before.above, equal = before.equal;
  double rest = 0.0;
  ForEachLogit<kWarpSize>(
      row, ShareOf(row, warp), lane, [&](int token, float x) {
        const bool counts = x > -INFINITY && !IsMarked(marks, token);
        const unsigned other = KeyOf(x);
        const bool is_above = counts && other > choice.key;
        const bool is_equal = counts && other == choice.key;
        const unsigned aboves = __ballot_sync(kAllLanes, is_above);
        const unsigned equals = __ballot_sync(kAllLanes, is_equal);
        const int rank = equal + __popc(equals & lower_lanes);  // among equals
        const bool is_told = is_above || (is_equal && rank < choice.num_left);
        if (is_told) {
          const int place = row.first_top + above +
                            __popc(aboves & lower_lanes) +
                            min(rank, choice.num_left);
          args.ids[place] = token;
          args.logits[place] = x;
        } else if (counts && row.scale > 0.0) {
          rest += RowWeight(x, top, row.scale);
        }
        above += __popc(aboves);
        equal += __popc(equals);
      });
  return rest;
}

// The greatest of some logits, the first of them where they are equal.
struct Greatest {
  float logit;
  int token;  // -1: there is none
  int is_bad;
};

__device__ inline Greatest GreatestOf(Greatest a, const Greatest& b) {
  a.is_bad |= b.is_bad;
  const bool is_lower = b.token >= 0 && b.token < a.token;
  if (b.logit > a.logit || (b.logit == a.logit && is_lower)) {
    a.logit = b.logit;
    a.token = b.token;
  }
  return a;
}

// The greatest of all lanes of the warp, each of which learns it.
__device__ inline Greatest WarpGreatest(Greatest mine) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    Greatest other;
    other.logit = __shfl_xor_sync(kAllLanes, mine.logit, distance);
    other.token = __shfl_xor_sync(kAllLanes, mine.token, distance);
    other.is_bad = __shfl_xor_sync(kAllLanes, mine.is_bad, distance);
    mine = GreatestOf(mine, other);
  }
  return mine;
}

// What the thread finds among its logits, a block's stride between them. It is
// no token that is marked, and none that is masked.
__device__ inline Greatest LookForGreatest(const TopRow& row,
                                           const unsigned* marks) {
  Greatest mine = {-INFINITY, -1, 0};
  ForEachLogitOfRow(row, [&](int token, float x) {
    if (!(x < INFINITY)) mine.is_bad = 1;
    if (x > mine.logit && !IsMarked(marks, token)) {
      mine.logit = x;
      mine.token = token;
    }
  });
  return mine;
}

// The weight of the thread's logits but that of the greatest.
__device__ inline double RestBeside(const TopRow& row, const unsigned* marks,
                                    const Greatest& greatest) {
  double rest = 0.0;
  ForEachLogitOfRow(row, [&](int token, float x) {
    const bool counts = x > -INFINITY && !IsMarked(marks, token);
    if (counts && token != greatest.token) {
      rest += RowWeight(x, greatest.logit, row.scale);
    }
  });
  return rest;
}

// The block's sum, in the order of the warps; for its thread 0.
__device__ inline double SumOfWarps(double x, double* sums) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  x = WarpSumOfDoubles(x);
  if (threadIdx.x % kWarpSize == 0) sums[warp] = x;
  __syncthreads();
  double sum = 0.0;
  if (threadIdx.x != 0) return sum;
  for (int i = 0; i < kWarps; ++i) sum += sums[i];
  return sum;
}

// The weight of the row at temperature 1; for the block's thread 0.
__device__ inline double MassOfRow(const TopRow& row, const unsigned* marks,
                                   float top, double* sums) {
  constexpr double kScale = 1.4426950408889634;  // log2(e)
  double mass = 0.0;
  ForEachLogitOfRow(row, [&](int token, float x) {
    const bool counts = x > -INFINITY && !IsMarked(marks, token);
    if (counts) mass += RowWeight(x, top, kScale);
  });
  return SumOfWarps(mass, sums);
}

// The row's answer where one is asked for.
__device__ inline void TellGreatest(const TopRowsArgs& args, const TopRow& row,
                                    const unsigned* marks, Greatest* warps,
                                    double* rests, double* masses) {
  const int thread = static_cast<int>(threadIdx.x);
  const Greatest mine = WarpGreatest(LookForGreatest(row, marks));
  if (thread % kWarpSize == 0) warps[thread / kWarpSize] = mine;
  __syncthreads();
  Greatest all = warps[0];
  for (int i = 1; i < kWarps; ++i) all = GreatestOf(all, warps[i]);
  TopRowResult result;
  result.count = all.token >= 0 ? 1 : 0;
  result.is_valid = all.is_bad == 0;
  result.rest =
      row.scale > 0.0 ? SumOfWarps(RestBeside(row, marks, all), rests) : 0.0;
  if (row.wants_mass) {
    result.mass = MassOfRow(row, marks, all.logit, masses);
  }
  if (thread != 0) return;
  if (all.token >= 0) {
    args.ids[row.first_top] = all.token;
    args.logits[row.first_top] = all.logit;
  }
  args.results[blockIdx.x] = result;
}

// Block x: row x.
__global__ void __launch_bounds__(kThreads, 1) TopRowsKernel(TopRowsArgs args) {
  OUTRIDER_DYNAMIC_SHARED(unsigned, marks);  // a bit for each token
  OUTRIDER_SHARED(int[kPlaces], counts);
  OUTRIDER_SHARED(Choice[1], chosen);
  OUTRIDER_SHARED(Greatest[kWarps], greatest);
  OUTRIDER_SHARED(Seen[kWarps], seen);
  OUTRIDER_SHARED(double[kWarps], rests);
  OUTRIDER_SHARED(double[kWarps], masses);
  const TopRow row = args.rows[blockIdx.x];
  if (row.vocab_size == 0) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  MarkTokens(args, row, marks);
  if (row.num_top == 1) {
    return TellGreatest(args, row, marks, greatest, rests, masses);
  }

  // Where there are fewer than asked for, the key comes out as a masked token's
  // or lower, and all of them are above it.
  Choice choice = {0u, row.num_top};
  for (int high = 32; high > 0; high -= kBits) {
    const Digit at = {max(high - kBits, 0), high};
    CountDigits(row, marks, choice.key, at, counts);
    if (warp == 0) {
      choice = ChooseDigit(choice, at, counts);
      if (lane == 0) chosen[0] = choice;
    }
    __syncthreads();
    choice = chosen[0];
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
  TopRowResult result;
  result.count = all.above + min(all.equal, choice.num_left);
  result.is_valid = all.is_bad == 0;
  result.rest = SumOfWarps(
      Write(args, row, marks, choice, before, all.top, lane, warp), rests);
  if (row.wants_mass) result.mass = MassOfRow(row, marks, all.top, masses);
  if (thread == 0) args.results[blockIdx.x] = result;
}

}  // namespace

void TopRows(const TopRowsArgs& args, Stream stream) {
  const size_t mark_bytes = sizeof(unsigned) * CeilDiv(args.vocab_size, 32);
  Launch(args.num_rows, kThreads, mark_bytes, stream, TopRowsKernel, args);
}

}  // namespace outrider::kernels::cuda
