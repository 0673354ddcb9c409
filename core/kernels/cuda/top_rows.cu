// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/row_weight.h"
#include "core/kernels/cuda/top_rows.h"
#include "core/kernels/cuda/top_rows_block.h"
#include "core/kernels/cuda/top_rows_candidates.h"
#include "core/kernels/cuda/top_rows_look.h"
#include "core/kernels/cuda/top_rows_outline.h"
#include "core/kernels/cuda/top_rows_weights.h"

// One block takes a row, and looks at it twice. First the tokens are taken in
// groups: as many groups as logits are asked for have their greatest at a bound
// or above it, so all that are asked for are there too. Then all logits there
// are put into a list of candidates, while what is below them is weighed. Among
// the candidates, in the order of ids, the block finds the key of the last of
// the greatest, eleven bits at a time, and each warp writes what is above it in
// its share of them. Where candidates are too many, as equal logits may be, the
// row itself is looked at in their place. The greatest alone, which greedy
// decoding asks for, takes one look at the row.
namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = kTopThreads;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kLoads = 4;  // keys a thread asks for before it looks at one
// Where the greatest are looked for: keys at the places [0, size), in the order
// of their tokens. What does not count has the logit of a masked token.
struct RowKeys {
  const float* logits;
  const unsigned* marks;
  int size;

  __device__ float Logit(int i) const {
    const float x = __ldg(logits + i);
    return IsMarked(marks, i) ? -INFINITY : x;
  }
  __device__ int Token(int i) const { return i; }
};
struct CandidateKeys {
  const float* logits;
  const int* tokens;
  int size;

  __device__ float Logit(int i) const { return logits[i]; }
  __device__ int Token(int i) const { return tokens[i]; }
};

// Places of keys.
struct Share {
  int begin;
  int end;
};

// Calls `visit` with the share's places from its `place`-th on, kStride apart,
// and their logits, of which it asks for kLoads before it looks at one. Every
// place takes as many turns: beyond the share with a logit that is never one of
// the greatest.
template <int kStride, typename Keys, typename Visit>
__device__ inline void ForEachLogit(const Keys& keys, const Share& share,
                                    int place, const Visit& visit) {
  for (int first = share.begin; first < share.end; first += kLoads * kStride) {
    float values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int at = first + i * kStride + place;
      values[i] = at < share.end ? keys.Logit(at) : -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      visit(first + i * kStride + place, values[i]);
    }
  }
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

// What all threads know of the row's choice.
struct Choice {
  unsigned key;  // the bits found so far, of the last of the greatest
  int num_left;  // how many are still to be found among keys that begin so
};

// Counts the keys that have `key`'s bits from `high` on, by their bits [low,
// high). What comes one after the other is mostly equal: it is added at once.
template <typename Keys>
__device__ inline void CountDigits(const Keys& keys, unsigned key, int low,
                                   int high, int* counts) {
  ClearCounts(counts);
  __syncthreads();
  const unsigned mask = (1u << (high - low)) - 1u;
  int last = 0, num_last = 0;
  ForEachLogit<kThreads>(
      keys, {0, keys.size}, static_cast<int>(threadIdx.x), [&](int, float x) {
        const unsigned other = KeyOf(x);
        if (!(x > -INFINITY)) return;
        if (high < 32 && (other ^ key) >> high != 0) return;
        const int digit = static_cast<int>(other >> low & mask);
        if (digit != last && num_last > 0) {
          atomicAdd(counts + last, num_last);
          num_last = 0;
        }
        last = digit;
        ++num_last;
      });
  if (num_last > 0) atomicAdd(counts + last, num_last);
  __syncthreads();
}

// Where there are fewer than asked for, the key comes out as one that all of
// them are above or equal to.
template <typename Keys>
__device__ inline Choice ChooseKey(const Keys& keys, int num_top,
                                   const BlockScratch& scratch) {
  Choice choice = {0u, num_top};
  for (int high = 32; high > 0; high -= kBits) {
    const int low = max(high - kBits, 0);
    CountDigits(keys, choice.key, low, high, scratch.counts);
    const Digit digit = ChooseDigit(choice.num_left, scratch);
    choice.key |= static_cast<unsigned>(digit.value) << low;
    choice.num_left = digit.num_left;
  }
  return choice;
}

// A warp's part of the keys.
__device__ inline Share ShareOf(int size, int warp) {
  const int tiles = (size + kWarpSize - 1) / kWarpSize;
  const int each = (tiles + kWarps - 1) / kWarps * kWarpSize;
  return {min(warp * each, size), min((warp + 1) * each, size)};
}

// How many keys are above the last one, and how many equal to it.
struct Seen {
  int above;
  int equal;
};

template <typename Keys>
__device__ inline Seen Look(const Keys& keys, unsigned key, int warp,
                            int lane) {
  Seen seen = {0, 0};
  ForEachLogit<kWarpSize>(
      keys, ShareOf(keys.size, warp), lane, [&](int, float x) {
        const bool counts = x > -INFINITY;
        const unsigned other = KeyOf(x);
        seen.above += __popc(__ballot_sync(kAllLanes, counts && other > key));
        seen.equal += __popc(__ballot_sync(kAllLanes, counts && other == key));
      });
  return seen;
}

// Writes the warp's share of the greatest: `before` lie in the shares before
// it. Of equal keys the first `num_left` are told. The weight of the lane's
// others.
template <typename Keys>
__device__ inline double Write(const TopRowsArgs& args, const TopRow& row,
                               const Keys& keys, const Choice& choice,
                               const Seen& before, float top) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const unsigned lower_lanes = (1u << lane) - 1u;
  int above = before.above, equal = before.equal;
  double rest = 0.0;
  ForEachLogit<kWarpSize>(
      keys, ShareOf(keys.size, warp), lane, [&](int at, float x) {
        const bool counts = x > -INFINITY;
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
          args.ids[place] = keys.Token(at);
          args.logits[place] = x;
        } else if (counts && row.scale > 0.0) {
          rest += RowWeight(x, top, row.scale);
        }
        above += __popc(aboves);
        equal += __popc(equals);
      });
  return rest;
}

// What was told, and the weight of the thread's others.
struct Told {
  int count;
  double rest;
};

template <typename Keys>
__device__ inline Told TellTop(const TopRowsArgs& args, const TopRow& row,
                               const Keys& keys, float top,
                               const BlockScratch& scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const Choice choice = ChooseKey(keys, row.num_top, scratch);
  const Seen mine = Look(keys, choice.key, warp, lane);
  if (lane == 0) {
    scratch.aboves[warp] = mine.above;
    scratch.equals[warp] = mine.equal;
  }
  __syncthreads();
  const int above = SumUpTo(scratch.aboves[lane], lane);
  const int equal = SumUpTo(scratch.equals[lane], lane);
  const Seen before = {__shfl_sync(kAllLanes, above, warp) - mine.above,
                       __shfl_sync(kAllLanes, equal, warp) - mine.equal};
  const int num_above = __shfl_sync(kAllLanes, above, kWarpSize - 1);
  const int num_equal = __shfl_sync(kAllLanes, equal, kWarpSize - 1);
  return {num_above + min(num_equal, choice.num_left),
          Write(args, row, keys, choice, before, top)};
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

// What the thread finds among its logits, in the order of their tokens. It is
// no token that is marked, and none that is masked.
__device__ inline Greatest LookForGreatest(const TopRow& row,
                                           const unsigned* marks) {
  Greatest mine = {-INFINITY, -1, 0};
  ForEachQuad<4>(row, [&](int, int token, const Quad& quad) {
    if (!IsValid(quad)) mine.is_bad = 1;
    const Quad x = Counted(row, marks, token, quad);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (x.of[i] > mine.logit) {
        mine.logit = x.of[i];
        mine.token = token + i;
      }
    }
  });
  return mine;
}

// The row's answer where one is asked for.
__device__ inline void TellGreatest(const TopRowsArgs& args, const TopRow& row,
                                    const unsigned* marks, Greatest* warps,
                                    const BlockScratch& scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  const Greatest mine = WarpGreatest(LookForGreatest(row, marks));
  if (thread % kWarpSize == 0) warps[thread / kWarpSize] = mine;
  __syncthreads();
  const Greatest all = WarpGreatest(warps[thread % kWarpSize]);
  TopRowResult result;
  result.count = all.token >= 0 ? 1 : 0;
  result.is_valid = all.is_bad == 0;
  if (row.scale > 0.0 || row.wants_mass) {
    const RowSums sums = WeighRow(row, marks, all.logit, [&](int token, float) {
      return token == all.token;
    });
    result.rest = SumOfWarps(sums.rest, scratch.rests);
    result.mass = SumOfWarps(sums.mass, scratch.masses);
  }
  if (thread != 0) return;
  if (all.token >= 0) {
    args.ids[row.first_top] = all.token;
    args.logits[row.first_top] = all.logit;
  }
  args.results[blockIdx.x] = result;
}

// Puts the row's candidates into the list; what the thread's others weigh.
__device__ inline RowSums LookForCandidates(const TopRow& row,
                                            const unsigned* marks,
                                            const Outline& outline,
                                            const Candidates& candidates) {
  return WeighRow(row, marks, outline.top, [&](int token, float x) {
    if (!(x >= outline.bound)) return false;
    const int place = atomicAdd(candidates.size, 1);
    if (place < kMostCandidates) {
      candidates.tokens[place] = token;
      candidates.logits[place] = x;
    }
    return true;
  });
}

// Block x: row x.
__global__ void __launch_bounds__(kThreads, 1) TopRowsKernel(TopRowsArgs args) {
  // Candidates' tokens, their logits, and a bit for each token.
  OUTRIDER_DYNAMIC_SHARED(unsigned, shared);
  OUTRIDER_SHARED(int[kBins], counts);
  OUTRIDER_SHARED(int[4 * kWarps], of_warps);
  OUTRIDER_SHARED(float[3 * kWarps], greatest_of_warps);
  OUTRIDER_SHARED(double[2 * kWarps], sums);
  OUTRIDER_SHARED(Greatest[kWarps], greatest);
  OUTRIDER_SHARED(int[1], num_candidates);
  const TopRow row = args.rows[blockIdx.x];
  if (row.vocab_size == 0) return;
  const BlockScratch scratch = {counts,
                                of_warps,
                                greatest_of_warps,
                                greatest_of_warps + kWarps,
                                greatest_of_warps + 2 * kWarps,
                                of_warps + kWarps,
                                of_warps + 2 * kWarps,
                                of_warps + 3 * kWarps,
                                sums,
                                sums + kWarps};
  const Candidates candidates = {
      reinterpret_cast<int*>(shared),
      reinterpret_cast<float*>(shared + kMostCandidates), num_candidates};
  unsigned* const marks = shared + 2 * kMostCandidates;
  if (threadIdx.x == 0) num_candidates[0] = 0;
  MarkTokens(args, row, marks);
  if (row.num_top == 1) {
    return TellGreatest(args, row, marks, greatest, scratch);
  }

  const Outline outline =
      OutlineOf(LookForPeaks(row, marks), row.num_top, scratch);
  const RowSums sums_of_row =
      LookForCandidates(row, marks, outline, candidates);
  __syncthreads();
  const int size = num_candidates[0];
  Told told;
  if (size <= kMostCandidates) {
    Order(row.vocab_size, marks, scratch, candidates, size);
    const CandidateKeys keys = {candidates.logits, candidates.tokens, size};
    told = TellTop(args, row, keys, outline.top, scratch);
    told.rest += sums_of_row.rest;
  } else {
    const RowKeys keys = {row.logits, marks, row.vocab_size};
    told = TellTop(args, row, keys, outline.top, scratch);
  }
  TopRowResult result;
  result.count = told.count;
  result.is_valid = outline.is_valid;
  result.rest = SumOfWarps(told.rest, scratch.rests);
  result.mass = SumOfWarps(sums_of_row.mass, scratch.masses);
  if (threadIdx.x == 0) args.results[blockIdx.x] = result;
}

}  // namespace

void TopRows(const TopRowsArgs& args, Stream stream) {
  const int words = 2 * kMostCandidates + CeilDiv(args.vocab_size, 32);
  Launch(args.num_rows, kThreads, sizeof(unsigned) * words, stream,
         TopRowsKernel, args);
}

}  // namespace outrider::kernels::cuda
