// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/device_coins.h"
#include "core/kernels/cuda/draw_next.h"
#include "core/kernels/cuda/numbers.h"
#include "core/kernels/cuda/race_noise.h"
#include "core/kernels/cuda/row_weight.h"

// One block takes a session, and a thread one of the greatest logits. What it
// draws is what the host draws from the same answer, but for roundings of
// doubles: the host draws again, and where it gets another token the steps
// after that one were in vain.
namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = kMaxDrawnTop;
constexpr int kWarps = kThreads / kWarpSize;

// The sum of `x` over the block's threads up to this one. `sums` has a place
// for each warp, free again when it returns.
__device__ double SumUpTo(double x, double* sums) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const double lower =
        __shfl_sync(kAllLanes, x, (lane - distance) & (kWarpSize - 1));
    if (lane >= distance) x += lower;
  }
  if (lane == kWarpSize - 1) sums[warp] = x;
  __syncthreads();
  double before = 0.0;
  for (int i = 0; i < warp; ++i) before += sums[i];
  __syncthreads();
  return before + x;
}

// The same over all of them.
__device__ double SumOfBlock(double x, double* sums) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  x = WarpSumOfDoubles(x);
  if (threadIdx.x % kWarpSize == 0) sums[warp] = x;
  __syncthreads();
  double all = 0.0;
  for (int i = 0; i < kWarps; ++i) all += sums[i];
  __syncthreads();
  return all;
}

__device__ double MaxOfBlock(double x, double* tops) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    x = fmax(x, __shfl_xor_sync(kAllLanes, x, distance));
  }
  if (threadIdx.x % kWarpSize == 0) tops[warp] = x;
  __syncthreads();
  double top = tops[0];
  for (int i = 1; i < kWarps; ++i) top = fmax(top, tops[i]);
  __syncthreads();
  return top;
}

// Sorts one key of each thread, the greatest first.
__device__ void SortFalling(uint64_t* keys) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int size = 2; size <= kThreads; size *= 2) {
#pragma unroll 1
    for (int distance = size / 2; distance > 0; distance /= 2) {
      const int other = thread ^ distance;
      const uint64_t a = keys[thread], b = keys[other];
      const bool is_falling = (thread & size) == 0;
      // The lower of the two places gets the greater key where they fall.
      const bool gets_greater = (thread < other) == is_falling;
      __syncthreads();
      if ((b > a) == gets_greater) keys[thread] = b;
      __syncthreads();
    }
  }
}

// What the block's threads share.
struct Shared {
  uint64_t* keys;   // [kThreads]
  double* weights;  // [kThreads]
  double* sums;     // [kWarps]
};

// What is left of the thread's weight, 0 of those that cannot be drawn, when
// the row is cut: first to top_p, then to the support. The order is falling,
// and ties go to the lowest id.
__device__ double CutWeight(const DrawSession& session, float logit,
                            double weight, double rest, const Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  constexpr unsigned kLast = 0xFFFFFFFFu;
  shared.weights[thread] = weight;
  shared.keys[thread] = weight > 0.0
                            ? static_cast<uint64_t>(KeyOf(logit)) << 32 |
                                  (kLast - static_cast<unsigned>(thread))
                            : 0;
  __syncthreads();
  SortFalling(shared.keys);
  // From here on the thread has a rank, and looks after that candidate.
  const uint64_t key = shared.keys[thread];
  const int candidate = static_cast<int>(kLast - static_cast<unsigned>(key));
  const double own = key != 0 ? shared.weights[candidate] : 0.0;
  const double before = SumUpTo(own, shared.sums) - own;
  const double total = SumOfBlock(own, shared.sums) + rest;
  const bool is_in =
      own > 0.0 && (session.top_p >= 1.0 || before < session.top_p * total);
  const double left = SumOfBlock(is_in ? own : 0.0, shared.sums);
  const bool is_kept =
      is_in && thread < session.support_size &&
      (session.support_mass >= 1.0 || before < session.support_mass * left);
  if (key != 0 && !is_kept) shared.weights[candidate] = 0.0;
  __syncthreads();
  const double cut = shared.weights[thread];
  __syncthreads();
  return cut;
}

// The first thread whose weight and those before it exceed the share; none
// of weight 0.
__device__ int Draw(double weight, double share, const Shared& shared) {
  const double sum = SumUpTo(weight, shared.sums);
  const double total = SumOfBlock(weight, shared.sums);
  shared.weights[threadIdx.x] = sum;
  __syncthreads();
  const double threshold = share * total;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const double all = shared.weights[kThreads - 1];
  int chosen = -1;
  for (int first = 0; first < kThreads && chosen < 0; first += kWarpSize) {
    // Rounding may leave all sums at the threshold.
    const double reached = shared.weights[first + lane];
    const unsigned lanes = __ballot_sync(
        kAllLanes, reached > threshold || (all > 0.0 && reached >= all));
    if (lanes != 0) chosen = first + __popc((lanes & (0u - lanes)) - 1u);
  }
  __syncthreads();
  return chosen;
}

// The thread whose token arrives first in the coupled rule's race.
__device__ int Race(const DrawSession& session, int token, double weight,
                    const Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  Racer racer;
  if (weight > 0.0) {
    const CoinBits noise =
        NoiseOf(session.seed, session.position, token - token % 2);
    racer.time = -log(OpenUniform(noise.bits[token % 2])) / weight;
    racer.token = thread;
  }
  racer = WarpFirst(racer);
  if (thread % kWarpSize == 0) {
    shared.weights[thread / kWarpSize] = racer.time;
    shared.keys[thread / kWarpSize] = static_cast<uint64_t>(racer.token);
  }
  __syncthreads();
  for (int i = 0; i < kWarps; ++i) {
    Racer other;
    other.time = shared.weights[i];
    other.token = static_cast<int>(shared.keys[i]);
    if (IsFirst(other, racer)) racer = other;
  }
  __syncthreads();
  return racer.token;
}

// Which of the row's greatest is drawn; -1: none can be.
__device__ int DrawFrom(const DrawNextArgs& args, const DrawSession& session,
                        const TopRow& row, const TopRowResult& found,
                        const Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool is_there = found.is_valid && thread < found.count;
  const int place = row.first_top + thread;
  const int token = is_there ? args.ids[place] : 0;
  const float logit = is_there ? args.top_logits[place] : -INFINITY;
  const double top = MaxOfBlock(static_cast<double>(logit), shared.sums);
  constexpr double kLeastNormal = 0x1p-1022;
  double weight = 0.0;
  if (is_there) {
    weight = exp2((static_cast<double>(logit) - top) * row.scale);
    if (weight < fmax(session.min_p, kLeastNormal)) weight = 0.0;
  }
  if (session.top_p < 1.0 || session.support_mass < 1.0 ||
      session.support_size < found.count) {
    weight = CutWeight(session, logit, weight,
                       session.has_rest ? found.rest : 0.0, shared);
  }
  if (session.is_coupled) return Race(session, token, weight, shared);
  const double total = SumOfBlock(weight, shared.sums);
  if (!(total > 0.0)) return -1;
  if (session.round_weights) {
    weight = static_cast<double>(
        ToFloat(FromFloat<Bf16>(static_cast<float>(weight / total))));
  }
  return Draw(weight,
              DraftUniform(session.seed, session.position, session.generation),
              shared);
}

// The session's row in the next step is padding.
__device__ void Leave(const DrawNextArgs& args, int session) {
  args.tokens[session] = 0;
  args.positions[session] = 0;
  args.blocks[session] = args.spare_block;
  for (int i = 0; i < args.num_tiles; ++i) {
    args.tiles[session * args.num_tiles + i].num_rows = 0;
  }
  args.rows[session].vocab_size = 0;
  args.rows[session].num_top = 0;
}

// The token is that of the session's row in the next step.
__device__ void Append(const DrawNextArgs& args, int session, int position,
                       int token) {
  AttentionTile* const tiles = args.tiles + session * args.num_tiles;
  args.tokens[session] = token;
  args.positions[session] = position;
  args.blocks[session] =
      args.tables[tiles[0].first_table_entry + position / kBlockLength];
  for (int i = 0; i < args.num_tiles; ++i) tiles[i].first_position = position;
  TopRow& row = args.rows[session];
  row.first_top += row.num_top;
  row.logits = args.logits + static_cast<size_t>(session) * args.vocab_size;
}

// Block x: session x.
__global__ void __launch_bounds__(kThreads) DrawNextKernel(DrawNextArgs args) {
  OUTRIDER_SHARED(uint64_t[kThreads], keys);
  OUTRIDER_SHARED(double[kThreads], weights);
  OUTRIDER_SHARED(double[kWarps], sums);
  const int index = static_cast<int>(blockIdx.x);
  const DrawSession session = args.sessions[index];
  const TopRow row = args.rows[index];
  if (session.num_left == 0) return;
  const TopRowResult found = args.found[index];
  // All have read what one of them will change.
  __syncthreads();
  double probability = session.probability;
  if (session.min_probability > 0.0) probability *= 1.0 / found.mass;
  int drawn = -1;
  if (session.num_left > 1 && probability >= session.min_probability) {
    drawn = DrawFrom(args, session, row, found, {keys, weights, sums});
  }
  if (threadIdx.x != 0) return;
  DrawnRow record;
  record.found = found;
  record.token = drawn >= 0 ? args.ids[row.first_top + drawn] : -1;
  args.records[session.next_record] = record;
  DrawSession& own = args.sessions[index];
  own.next_record = session.next_record + 1;
  own.position = session.position + 1;
  own.probability = probability;
  own.num_left = drawn >= 0 ? session.num_left - 1 : 0;
  if (drawn >= 0) {
    Append(args, index, static_cast<int>(session.position), record.token);
  } else {
    Leave(args, index);
  }
}

}  // namespace

void DrawNext(const DrawNextArgs& args, Stream stream) {
  Launch(args.num_sessions, kThreads, 0, stream, DrawNextKernel, args);
}

}  // namespace outrider::kernels::cuda
