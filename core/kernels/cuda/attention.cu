// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/async_copy.h"
#include "core/kernels/cuda/attention.h"
#include "core/kernels/cuda/attention_parts.h"
#include "core/kernels/cuda/attention_queries.h"
#include "core/kernels/cuda/mma.h"
#include "core/kernels/cuda/next_kernel.h"

// Flash attention (Dao et al. 2022) over paged keys, split over the context.
// All queries of a session that share a head of keys are rows of one operand,
// so that keys and values are read once for them, each in 16 bytes straight to
// the lane whose registers the tensor cores want them in: which element of a
// head is which k or n of an operand is free, and is chosen so that a lane's
// share is consecutive in memory. In shared memory a warp keeps the blocks that
// are on their way, each lane its own bytes, and in the end its sums.
namespace outrider::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
// A split is cut into slices, one a warp, and those into blocks of KV memory.
constexpr int kSliceKeys = kSplitKeys / kWarps;
constexpr int kChunk = 32;  // elements of a head that two operands take
constexpr int kSpan = 64;   // elements of a head that eight operands B take
constexpr float kLog2E = 1.4426950408889634f;

// The softmax of some keys, for the two queries of a lane (g and g + 8): the
// greatest score, in powers of two, and the sum of 2^(score - top).
struct Softmax {
  float top[2] = {kNothing, kNothing};
  float mass[2] = {0.0f, 0.0f};
};

// Operands A of 16 queries: lane g * 4 + t holds of operand 2c + h elements
// 32c + 8t + 4h to 32c + 8t + 4h + 3 of queries g and g + 8.
template <int kDim>
struct QueryOperands {
  FragmentA operand[kDim / kTileQueries];
};

template <int kDim>
__device__ QueryOperands<kDim> LoadQueries(const AttentionArgs& args,
                                           const Query (&mine)[2], int t) {
  QueryOperands<kDim> queries;
#pragma unroll
  for (int c = 0; c < kDim / kChunk; ++c) {
    const int at = c * kChunk + 8 * t;
    const bool is_inside = at < args.heads.head_dim;
    const uint4 upper =
        Load8(args.queries, mine[0].place + at, is_inside && mine[0].end > 0);
    const uint4 lower =
        Load8(args.queries, mine[1].place + at, is_inside && mine[1].end > 0);
    queries.operand[2 * c] = {{upper.x, lower.x, upper.y, lower.y}};
    queries.operand[2 * c + 1] = {{upper.z, lower.z, upper.w, lower.w}};
  }
  return queries;
}

// The warp's slice: up to kSliceBlocks blocks of KV memory that some query of
// the tile sees. Nothing outside `range` is read.
struct Slice {
  Range range;
  int kv_head;
  int first;       // position of its first block
  int num_blocks;  // none, where the tile sees nothing of the slice
  int entry;       // of lane i: which block of memory its i-th block is
};

__device__ inline Slice FindSlice(const AttentionArgs& args,
                                  const AttentionTile& tile, const Range& range,
                                  int kv_head, int begin) {
  const int first_block = max(begin, range.begin) / kBlockLength;
  const int last_block = (range.end - 1) / kBlockLength;
  const int end_block = (begin + kSliceKeys) / kBlockLength;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int mine = min(first_block + lane, last_block);
  return {range, kv_head, first_block * kBlockLength,
          min(last_block + 1, end_block) - first_block,
          __ldg(args.tables + tile.first_table_entry + mine)};
}

// The shared memory of a block of threads: for each warp a ring of blocks of
// keys and of values, both as the lanes take them up.
template <int kDim>
struct Ring {
  static constexpr int kKeys = 2 * (kDim / kChunk);  // a lane's 16 bytes
  static constexpr int kValues = 4 * (kDim / kSpan);
  static constexpr int kBlock = (kKeys + kValues) * kWarpSize;
  static constexpr int kLength = kDim == 64 ? 4 : 2;
  static constexpr int kOfWarp = kLength * kBlock;
  static constexpr size_t kBytes = sizeof(uint4) * kWarps * kOfWarp;
};

// Asks for the slice's i-th block: zeros for what nobody sees, since garbage
// lies there, and 0 * NaN is not 0. The lane's share of keys is what ScoreBlock
// wants, that of values what AddValues wants.
template <int kDim>
__device__ void AskForBlock(const AttentionArgs& args, const Slice& slice,
                            int i, uint4* to) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int g = lane / 4, t = lane % 4;
  const int entry = __shfl_sync(kAllLanes, slice.entry, i);
  const int first = slice.first + i * kBlockLength;
  const size_t block =
      (static_cast<size_t>(entry) * args.heads.num_kv_heads + slice.kv_head) *
      kBlockLength * args.heads.head_dim;
  const auto ask = [&](const void* elements, int key, int at) {
    const int position = first + key;
    const bool is_seen = position >= slice.range.begin &&
                         position < slice.range.end && at < args.heads.head_dim;
    const size_t place = is_seen ? block + key * args.heads.head_dim + at : 0;
    CopyAsync<Reuse::kNone>(to,
                            reinterpret_cast<const uint4*>(
                                static_cast<const uint16_t*>(elements) + place),
                            is_seen);
    to += kWarpSize;
  };
#pragma unroll
  for (int j = 0; j < 2; ++j) {
#pragma unroll
    for (int c = 0; c < kDim / kChunk; ++c) {
      ask(args.kv.keys, 8 * j + g, c * kChunk + 8 * t);
    }
  }
#pragma unroll
  for (int span = 0; span < kDim / kSpan; ++span) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {  // keys 2t, 2t + 1, 2t + 8, 2t + 9
      ask(args.kv.values, n / 2 * 8 + 2 * t + n % 2, span * kSpan + 8 * g);
    }
  }
}

// q . k of 16 queries and the block's 16 keys, of which `keys` are the lane's:
// scores[j].d is the part of an mma's D for keys 8j to 8j + 7.
template <typename T, int kDim>
__device__ void ScoreBlock(const QueryOperands<kDim>& queries,
                           const uint4* keys, FragmentD (&scores)[2]) {
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    scores[j] = {};
#pragma unroll
    for (int c = 0; c < kDim / kChunk; ++c) {
      const uint4 key = keys[(j * (kDim / kChunk) + c) * kWarpSize];
      Mma<T>(scores[j], queries.operand[2 * c], {{key.x, key.y}});
      Mma<T>(scores[j], queries.operand[2 * c + 1], {{key.z, key.w}});
    }
  }
}

// The greatest and the sum over the four lanes that share two queries.
__device__ inline float QuadMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ inline float QuadSum(float x) {
  x = __fadd_rn(x, __shfl_xor_sync(kAllLanes, x, 1));
  return __fadd_rn(x, __shfl_xor_sync(kAllLanes, x, 2));
}

// Turns scores into weights 2^(score - top), and lowers what was summed under
// an earlier top: `factor`, for the two queries.
__device__ inline void Weigh(const AttentionArgs& args, const Query (&mine)[2],
                             int first, FragmentD (&scores)[2],
                             Softmax& softmax, float (&factor)[2]) {
  const int t = static_cast<int>(threadIdx.x) % 4;
  const float scale = __fmul_rn(args.scale, kLog2E);
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    float weights[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int position = first + i / 2 * 8 + 2 * t + i % 2;
      const bool is_seen = position >= mine[q].begin && position < mine[q].end;
      const float score = scores[i / 2].d[2 * q + i % 2];
      weights[i] = is_seen ? __fmul_rn(score, scale) : kNothing;
    }
    const float top =
        fmaxf(softmax.top[q], QuadMax(fmaxf(fmaxf(weights[0], weights[1]),
                                            fmaxf(weights[2], weights[3]))));
    // Nothing seen so far: 2^(-inf - 0) is 0, where 2^(-inf + inf) is NaN.
    const float base = top == kNothing ? 0.0f : top;
    factor[q] = exp2f(__fadd_rn(softmax.top[q], -base));
    softmax.top[q] = top;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights[i] = exp2f(__fadd_rn(weights[i], -base));
      scores[i / 2].d[2 * q + i % 2] = weights[i];
    }
    const float mass = QuadSum(__fadd_rn(__fadd_rn(weights[0], weights[1]),
                                         __fadd_rn(weights[2], weights[3])));
    softmax.mass[q] = __fmaf_rn(softmax.mass[q], factor[q], mass);
  }
}

// sums += weights * values. The weights' D becomes an operand A as it is: a
// lane holds the same places of both. An operand B wants pairs of keys for one
// element of the head, which two loads of eight elements bring for eight
// operands: column n of operand j of a span is element 8n + j.
template <typename T, int kDim>
__device__ void AddValues(const FragmentD (&weights)[2], const uint4* mine,
                          FragmentD (&sums)[kDim / 8]) {
  const FragmentA a = {{PackPair<T>(weights[0].d[0], weights[0].d[1]),
                        PackPair<T>(weights[0].d[2], weights[0].d[3]),
                        PackPair<T>(weights[1].d[0], weights[1].d[1]),
                        PackPair<T>(weights[1].d[2], weights[1].d[3])}};
#pragma unroll
  for (int span = 0; span < kDim / kSpan; ++span) {
    uint4 values[4];  // of keys 2t, 2t + 1, 2t + 8, 2t + 9
#pragma unroll
    for (int n = 0; n < 4; ++n) values[n] = mine[(span * 4 + n) * kWarpSize];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      constexpr uint32_t kLowHalves = 0x5410, kHighHalves = 0x7632;
      const uint32_t halves = j % 2 == 0 ? kLowHalves : kHighHalves;
      const FragmentB b = {
          {__byte_perm(Word(values[0], j / 2), Word(values[1], j / 2), halves),
           __byte_perm(Word(values[2], j / 2), Word(values[3], j / 2),
                       halves)}};
      Mma<T>(sums[span * 8 + j], a, b);
    }
  }
}

// The softmax of the slice's keys, and their weighted values.
template <typename T, int kDim>
__device__ void Attend(const AttentionArgs& args, const Slice& slice,
                       const Query (&mine)[2], uint4* ring, Softmax& softmax,
                       FragmentD (&sums)[kDim / 8]) {
  using Mine = Ring<kDim>;
  const auto ask = [&](int i) {
    uint4* const to = ring + i % Mine::kLength * Mine::kBlock;
    if (i < slice.num_blocks) AskForBlock<kDim>(args, slice, i, to);
    EndCopyGroup();  // an empty one too: groups are counted
  };
#pragma unroll 1
  for (int i = 0; i < Mine::kLength; ++i) ask(i);
  const int t = static_cast<int>(threadIdx.x) % 4;
  const QueryOperands<kDim> queries = LoadQueries<kDim>(args, mine, t);
  __syncwarp();  // an mma wants all lanes, and some load nothing
#pragma unroll 1
  for (int i = 0; i < slice.num_blocks; ++i) {
    WaitForCopies<Mine::kLength - 1>();
    const uint4* const keys = ring + i % Mine::kLength * Mine::kBlock;
    FragmentD scores[2];
    ScoreBlock<T, kDim>(queries, keys, scores);
    float factor[2];
    Weigh(args, mine, slice.first + i * kBlockLength, scores, softmax, factor);
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sums[n].d[j] = __fmul_rn(sums[n].d[j], factor[j / 2]);
      }
    }
    AddValues<T, kDim>(scores, keys + Mine::kKeys * kWarpSize, sums);
    ask(i + Mine::kLength);
  }
}

// Block (x, y): pair x of the launch's, head y of the keys.
template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads) SplitKernel(AttentionArgs args) {
  OUTRIDER_DYNAMIC_SHARED(uint4, rings);  // [kWarps][Ring::kOfWarp]
  OUTRIDER_SHARED(float2[kWarps * kTileQueries], slice_softmax);
  constexpr int kFragments = Scratch<kDim>::kFragments;
  constexpr int kOfWarp = Ring<kDim>::kOfWarp;
  AwaitPreviousKernel();
  LetNextKernelBegin(args.num_tiles);
  const int pair = args.first_pair + static_cast<int>(blockIdx.x);
  const auto [tile_index, split] = FindPair(args, pair);
  const AttentionTile tile = args.tiles[tile_index];
  const int kv_head = static_cast<int>(blockIdx.y);
  if (tile.num_rows == 0) return;
  const Range range = FindRange(args, tile);
  if (range.begin >= (split + 1) * kSplitKeys ||
      range.end <= split * kSplitKeys) {
    return;
  }
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const int g = lane / 4, t = lane % 4;
  const Query mine[2] = {FindQuery(args, tile, kv_head, g),
                         FindQuery(args, tile, kv_head, g + 8)};
  // The warp's sums go where its ring was: what it asked for has come.
  uint4* const ring = rings + warp * kOfWarp + lane;
  Softmax softmax;
  FragmentD sums[kDim / 8] = {};
  const Slice slice = FindSlice(args, tile, range, kv_head,
                                split * kSplitKeys + warp * kSliceKeys);
  Attend<T, kDim>(args, slice, mine, ring, softmax, sums);

#pragma unroll
  for (int i = 0; i < kDim / 8; ++i) ring[i * kWarpSize] = BitsOf(sums[i]);
  if (t == 0) {
    for (int q = 0; q < 2; ++q) {
      slice_softmax[warp * kTileQueries + g + 8 * q] =
          make_float2(softmax.top[q], softmax.mass[q]);
    }
  }
  __syncthreads();

  const Scratch<kDim> scratch(args, pair, kv_head);
  // A thread's lane is the same in all the fragments it joins.
  for (int i = thread; i < kFragments; i += kThreads) {
    Joined all;
    for (int w = 0; w < kWarps; ++w) {
      JoinPart(all, FloatsOf(rings[w * kOfWarp + i]),
               slice_softmax[w * kTileQueries + g],
               slice_softmax[w * kTileQueries + g + 8]);
    }
    scratch.sums[i] = all.sum;
    if (i < kWarpSize && t == 0) {
      for (int q = 0; q < 2; ++q) {
        scratch.softmax[g + 8 * q] = make_float2(all.top[q], all.mass[q]);
      }
    }
  }
}

// Block (x, y, z): tile x, head y of the keys, fragments z * kThreads on, one a
// thread. Joins the splits.
template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads) MergeKernel(AttentionArgs args) {
  constexpr int kFragments = Scratch<kDim>::kFragments;
  static_assert(kFragments % kThreads == 0);
  constexpr int kAtOnce = 8;  // splits that are read before they are joined
  AwaitPreviousKernel();
  LetNextKernelBegin(args.num_tiles);
  const AttentionTile tile = args.tiles[blockIdx.x];
  if (tile.num_rows == 0) return;
  const int first_pair = tile.first_pair;
  if (first_pair < args.first_pair ||
      first_pair >= args.first_pair + args.num_pairs) {
    return;  // it is another launch's
  }
  const int kv_head = static_cast<int>(blockIdx.y);
  const Range range = FindRange(args, tile);
  const Scratch<kDim> scratch(args, first_pair, kv_head);
  const int fragment = static_cast<int>(blockIdx.z * kThreads + threadIdx.x);
  const int g = fragment % kWarpSize / 4, t = fragment % 4;
  const int last_split = (range.end - 1) / kSplitKeys;
  Joined all;
  for (int split = range.begin / kSplitKeys; split <= last_split;
       split += kAtOnce) {
    float4 sums[kAtOnce];
    float2 upper[kAtOnce], lower[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      // After the last split it is read again, and not joined.
      const int at = min(split + i, last_split) * tile.num_beside;
      sums[i] = scratch.sums[static_cast<size_t>(at) * kFragments + fragment];
      upper[i] = scratch.softmax[at * kTileQueries + g];
      lower[i] = scratch.softmax[at * kTileQueries + g + 8];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (split + i <= last_split) JoinPart(all, sums[i], upper[i], lower[i]);
    }
  }
  // Operand j of a span, columns 2t and 2t + 1 (AddValues).
  const int operand = fragment / kWarpSize;
  const int at = operand / 8 * kSpan + 16 * t + operand % 8;
  const float sums[2][2] = {{all.sum.x, all.sum.y}, {all.sum.z, all.sum.w}};
  for (int q = 0; q < 2; ++q) {
    const Query mine = FindQuery(args, tile, kv_head, g + 8 * q);
    if (mine.end == 0) continue;
    for (int n = 0; n < 2; ++n) {
      if (at + 8 * n >= args.heads.head_dim) continue;
      static_cast<T*>(args.out)[mine.place + at + 8 * n] =
          FromFloat<T>(sums[q][n] / all.mass[q]);
    }
  }
}

template <typename T, int kDim>
void Run(const AttentionArgs& args, Stream stream) {
  LaunchEarly(dim3(args.num_pairs, args.heads.num_kv_heads), kThreads,
              Ring<kDim>::kBytes, stream, SplitKernel<T, kDim>, args);
  constexpr int kParts = Scratch<kDim>::kFragments / kThreads;
  LaunchEarly(dim3(args.num_tiles, args.heads.num_kv_heads, kParts), kThreads,
              0, stream, MergeKernel<T, kDim>, args);
}

}  // namespace

void Attention(const AttentionArgs& args, Stream stream) {
  const bool is_small = args.heads.head_dim <= 64;
  if (args.element == Element::kBFloat16) {
    is_small ? Run<Bf16, 64>(args, stream) : Run<Bf16, 128>(args, stream);
  } else {
    is_small ? Run<Half, 64>(args, stream) : Run<Half, 128>(args, stream);
  }
}

}  // namespace outrider::kernels::cuda
