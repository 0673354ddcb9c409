// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/race_noise.h"
#include "core/kernels/cuda/row_weight.h"
#include "core/kernels/cuda/score_rows.h"

// A row is cut into chunks, one a block; a thread has kRun consecutive tokens.
// Sums run over a thread's tokens upwards, over a warp's threads in a tree, and
// over warps and chunks upwards: an order that nothing but the vocabulary's
// size decides. The draw walks down the same sums.
namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kRun = 16;
constexpr int kChunk = kThreads * kRun;

// The greatest logit of a chunk, or of a row.
struct Top {
  float value = -INFINITY;
  int token = 0;
  bool is_bad = false;  // a logit is NaN or +infinity
};

// What a chunk leaves to the kernels after it.
struct Chunk {
  Top top;
  double tail;
  Racer racer;
};
static_assert(kChunk == kScoreChunk && sizeof(Chunk) <= kScoreChunkBytes);

int NumChunks(int vocab_size) { return CeilDiv(vocab_size, kChunk); }

__device__ inline bool IsBetter(const Top& a, const Top& b) {
  return a.value > b.value || (a.value == b.value && a.token < b.token);
}

__device__ inline Top WarpTop(Top top) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    Top other;
    other.value = __shfl_xor_sync(kAllLanes, top.value, distance);
    other.token = __shfl_xor_sync(kAllLanes, top.token, distance);
    const int is_bad =
        __shfl_xor_sync(kAllLanes, static_cast<int>(top.is_bad), distance);
    other.is_bad = top.is_bad || is_bad != 0;
    if (IsBetter(other, top)) {
      top = other;
    } else {
      top.is_bad = other.is_bad;
    }
  }
  return top;
}

// What is said of each token of a chunk, by its place in it.
using Marks = unsigned char[kChunk];
constexpr unsigned char kIsOnSupport = 1;
constexpr unsigned char kIsMoved = 2;

// The first of `count` places whose token is not below `token`.
template <typename TokenAt>
__device__ inline int FirstPlace(int count, int token,
                                 const TokenAt& token_at) {
  int first = 0, last = count;
  while (first < last) {
    const int middle = (first + last) / 2;
    if (token_at(middle) < token) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

// Marks the chunk's tokens that are moved, and none else.
__device__ inline void MarkMoved(const ScoreRowsArgs& args, const DrawRow& row,
                                 int begin, unsigned char* marks) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kChunk; i += kThreads) marks[i] = 0;
  __syncthreads();
  const MovedLogit* const moved = args.moved + row.first_moved;
  const int first =
      FirstPlace(row.num_moved, begin, [&](int i) { return moved[i].token; });
  for (int i = first + thread; i < row.num_moved; i += kThreads) {
    if (moved[i].token >= begin + kChunk) break;
    marks[moved[i].token - begin] = kIsMoved;
  }
  __syncthreads();
}

// core/sampling/adjust_logits.h defines it.
__device__ inline double Moved(const DrawRow& row, const MovedLogit& moved,
                               float logit) {
  double x = static_cast<double>(logit) + moved.bias;
  if (moved.num_generated < 0) return x;
  x = x > 0.0 ? x / row.repetition_penalty : x * row.repetition_penalty;
  if (moved.num_generated == 0) return x;
  x -= row.frequency_penalty * static_cast<double>(moved.num_generated);
  return x - row.presence_penalty;
}

// The logit of a token with that mark.
__device__ inline double LogitOf(const ScoreRowsArgs& args, const DrawRow& row,
                                 unsigned char mark, int token) {
  const float logit = __ldg(row.logits + token);
  if ((mark & kIsMoved) == 0) return static_cast<double>(logit);
  const MovedLogit* const moved = args.moved + row.first_moved;
  const int place =
      FirstPlace(row.num_moved, token, [&](int i) { return moved[i].token; });
  return Moved(row, moved[place], logit);
}

// Block (x, y): chunk x of row y.
__global__ void __launch_bounds__(kThreads)
    TopKernel(ScoreRowsArgs args, Chunk* chunks) {
  OUTRIDER_SHARED(Top[kWarps], tops);
  OUTRIDER_SHARED(Marks, marks);
  const int thread = static_cast<int>(threadIdx.x);
  const DrawRow row = args.rows[blockIdx.y];
  const float* logits = row.logits;
  const int vocab_size = row.vocab_size;
  if (vocab_size == 0) return;
  const int begin = static_cast<int>(blockIdx.x) * kChunk;
  const bool has_moved = row.num_moved > 0;
  if (has_moved) MarkMoved(args, row, begin, marks);
  Top top;
  top.token = begin;
  // Neighbours read neighbours: here the order decides nothing. All are asked
  // for before one is looked at.
  float values[kRun];
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    const int token = begin + i * kThreads + thread;
    values[i] = token < vocab_size ? __ldg(logits + token) : -INFINITY;
  }
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    const int token = begin + i * kThreads + thread;
    float x = values[i];
    if (has_moved && marks[token - begin] != 0) {
      x = static_cast<float>(LogitOf(args, row, marks[token - begin], token));
    }
    top.is_bad = top.is_bad || !(x < INFINITY);
    if (x > top.value) {
      top.value = x;
      top.token = token;
    }
  }
  top = WarpTop(top);
  if (thread % kWarpSize == 0) tops[thread / kWarpSize] = top;
  __syncthreads();
  if (thread != 0) return;
  for (int warp = 1; warp < kWarps; ++warp) {
    const bool is_bad = top.is_bad || tops[warp].is_bad;
    if (IsBetter(tops[warp], top)) top = tops[warp];
    top.is_bad = is_bad;
  }
  chunks[blockIdx.y * gridDim.x + blockIdx.x].top = top;
}

__device__ inline Top TopOfRow(const Chunk* chunks, int num_chunks) {
  Top top = chunks[0].top;
  for (int i = 1; i < num_chunks; ++i) {
    const bool is_bad = top.is_bad || chunks[i].top.is_bad;
    if (IsBetter(chunks[i].top, top)) top = chunks[i].top;
    top.is_bad = is_bad;
  }
  return top;
}

__device__ inline float WeightOf(const ScoreRowsArgs& args, const DrawRow& row,
                                 const Top& top, unsigned char mark,
                                 int token) {
  if (row.scale == 0.0) return token == top.token ? 1.0f : 0.0f;
  return RowWeight(LogitOf(args, row, mark, token), top.value, row.scale);
}

// Marks the chunk's tokens: those that are moved, and those on the support, for
// each of which `visit` is called with its place in ScoreRowsArgs::support and
// its mark.
template <typename Visit>
__device__ void MarkTokens(const ScoreRowsArgs& args, const DrawRow& row,
                           int begin, unsigned char* marks,
                           const Visit& visit) {
  MarkMoved(args, row, begin, marks);
  const int* support = args.support + row.first_support;
  const int first =
      FirstPlace(row.num_support, begin, [&](int i) { return support[i]; });
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = first + thread; i < row.num_support; i += kThreads) {
    if (support[i] >= begin + kChunk) break;
    unsigned char& mark = marks[support[i] - begin];
    mark |= kIsOnSupport;
    visit(row.first_support + i, mark);
  }
  __syncthreads();
}

// The weight of the thread's tokens off the support.
__device__ inline double TailOfRun(const ScoreRowsArgs& args,
                                   const DrawRow& row, const Top& top,
                                   int begin, const unsigned char* marks) {
  double sum = 0.0;
  const int first = static_cast<int>(threadIdx.x) * kRun;
  for (int i = first; i < first + kRun; ++i) {
    if (begin + i >= row.vocab_size) break;
    if ((marks[i] & kIsOnSupport) == 0) {
      sum += WeightOf(args, row, top, marks[i], begin + i);
    }
  }
  return sum;
}

// The least -log(u) / weight of the thread's tokens. Quotients are compared
// crosswise, and only the winner's is taken.
__device__ inline Racer RaceOfRun(const ScoreRowsArgs& args, const DrawRow& row,
                                  const Top& top, int begin,
                                  const unsigned char* marks) {
  double best_log = INFINITY, best_weight = 1.0;
  int winner = -1;
  const int first = begin + static_cast<int>(threadIdx.x) * kRun;
#pragma unroll 1
  for (int pair = first; pair < first + kRun; pair += 2) {
    if (pair >= row.vocab_size) break;
    const CoinBits noise = NoiseOf(row.seed, row.position, pair);
    for (int i = 0; i < 2 && pair + i < row.vocab_size; ++i) {
      const double weight =
          WeightOf(args, row, top, marks[pair - begin + i], pair + i);
      if (weight <= 0.0) continue;
      const double uniform = OpenUniform(noise.bits[i]);
      // -log(u) > 1 - u: nearly all lose without a logarithm.
      const double bar = best_log * weight;
      if ((1.0 - uniform) * best_weight >= bar) continue;
      const double time = -log(uniform);
      if (time * best_weight < bar) {
        best_log = time;
        best_weight = weight;
        winner = pair + i;
      }
    }
  }
  Racer racer;
  racer.time = best_log / best_weight;
  racer.token = winner;
  return racer;
}

// Block (x, y): chunk x of row y.
__global__ void __launch_bounds__(kThreads)
    WeighKernel(ScoreRowsArgs args, Chunk* chunks) {
  OUTRIDER_SHARED(Marks, marks);
  OUTRIDER_SHARED(double[kWarps], tails);
  OUTRIDER_SHARED(Racer[kWarps], racers);
  const DrawRow row = args.rows[blockIdx.y];
  if (row.vocab_size == 0) return;
  Chunk* const mine = chunks + blockIdx.y * gridDim.x;
  const Top top = TopOfRow(mine, static_cast<int>(gridDim.x));
  const int begin = static_cast<int>(blockIdx.x) * kChunk;
  MarkTokens(args, row, begin, marks, [&](int place, unsigned char mark) {
    args.support_weights[place] =
        WeightOf(args, row, top, mark, args.support[place]);
  });
  const int thread = static_cast<int>(threadIdx.x);
  const double tail = WarpSumOfDoubles(TailOfRun(args, row, top, begin, marks));
  Racer racer;
  if (row.is_coupled) {
    racer = WarpFirst(RaceOfRun(args, row, top, begin, marks));
  }
  if (thread % kWarpSize == 0) {
    tails[thread / kWarpSize] = tail;
    racers[thread / kWarpSize] = racer;
  }
  __syncthreads();
  if (thread != 0) return;
  Chunk& chunk = mine[blockIdx.x];
  chunk.tail = 0.0;
  chunk.racer = racer;
  for (int warp = 0; warp < kWarps; ++warp) {
    chunk.tail += tails[warp];
    if (IsFirst(racers[warp], chunk.racer)) chunk.racer = racers[warp];
  }
}

// Which of `count` weights, not negative, holds the threshold, counted from
// `before`; that becomes what is before the chosen one. Rounding may leave all
// of them below it: then the last that is possible takes it.
template <typename Weight>
__device__ int Choose(int count, double threshold, double& before,
                      const Weight& weight) {
  int chosen = -1;
  double running = before;
  for (int i = 0; i < count; ++i) {
    const double next = weight(i);
    if (!(next > 0.0)) continue;
    chosen = i;
    before = running;
    running += next;
    if (running > threshold) break;
  }
  return chosen;
}

// Block x: row x. Draws, and writes the answer.
__global__ void __launch_bounds__(kThreads)
    DrawKernel(ScoreRowsArgs args, const Chunk* chunks, int num_chunks) {
  OUTRIDER_SHARED(Marks, marks);
  OUTRIDER_SHARED(double[kThreads], runs);
  OUTRIDER_SHARED(double[kWarps], warps);
  const int thread = static_cast<int>(threadIdx.x);
  const DrawRow row = args.rows[blockIdx.x];
  if (row.vocab_size == 0) return;
  const Chunk* const mine = chunks + blockIdx.x * num_chunks;
  const Top top = TopOfRow(mine, num_chunks);
  double tail = 0.0;
  for (int i = 0; i < num_chunks; ++i) tail += mine[i].tail;

  // All threads choose the same chunk, and weigh it once more.
  const double threshold = row.uniform * tail;
  double before = 0.0;
  const int chunk = Choose(num_chunks, threshold, before,
                           [&](int i) { return mine[i].tail; });
  const int begin = max(chunk, 0) * kChunk;
  MarkTokens(args, row, begin, marks, [](int, unsigned char) {});
  runs[thread] = TailOfRun(args, row, top, begin, marks);
  const double warp_tail = WarpSumOfDoubles(runs[thread]);
  if (thread % kWarpSize == 0) warps[thread / kWarpSize] = warp_tail;
  __syncthreads();
  if (thread != 0) return;

  DrawRowResult answer;
  answer.top = top.value;
  answer.argmax = top.token;
  answer.is_valid = !top.is_bad && top.value > -INFINITY;
  // By so much of an exponent at most the greatest was rounded.
  if (row.num_moved > 0 && row.scale * fabs(top.value) * 0x1p-24 > 1.0) {
    answer.is_valid = false;
  }
  answer.tail = tail;
  answer.drawn = -1;
  if (row.is_coupled) {
    Racer racer = mine[0].racer;
    for (int i = 1; i < num_chunks; ++i) {
      if (IsFirst(mine[i].racer, racer)) racer = mine[i].racer;
    }
    answer.drawn = racer.token;
  } else if (chunk >= 0) {
    const int warp =
        Choose(kWarps, threshold, before, [&](int i) { return warps[i]; });
    const int lane = Choose(kWarpSize, threshold, before,
                            [&](int i) { return runs[warp * kWarpSize + i]; });
    const int first = (warp * kWarpSize + lane) * kRun;
    const int token = Choose(kRun, threshold, before, [&](int i) -> double {
      const int at = begin + first + i;
      const unsigned char mark = marks[first + i];
      if (at >= row.vocab_size || (mark & kIsOnSupport) != 0) return 0.0;
      return WeightOf(args, row, top, mark, at);
    });
    answer.drawn = begin + first + token;
  }
  if (!answer.is_valid) answer.drawn = -1;
  answer.drawn_logit =
      answer.drawn < 0 ? 0.0f : __ldg(row.logits + answer.drawn);
  args.answers[blockIdx.x] = answer;
}

}  // namespace

void ScoreRows(const ScoreRowsArgs& args, Stream stream) {
  auto* const chunks = static_cast<Chunk*>(args.scratch);
  const int num_chunks = NumChunks(args.vocab_size);
  const dim3 blocks(num_chunks, args.num_rows);
  Launch(blocks, kThreads, 0, stream, TopKernel, args, chunks);
  Launch(blocks, kThreads, 0, stream, WeighKernel, args, chunks);
  Launch(args.num_rows, kThreads, 0, stream, DrawKernel, args, chunks,
         num_chunks);
}

}  // namespace outrider::kernels::cuda
