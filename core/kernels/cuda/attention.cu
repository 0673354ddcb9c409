// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/attention.h"
#include "core/kernels/cuda/attention_parts.h"
#include "core/kernels/cuda/attention_queries.h"
#include "core/kernels/cuda/mma.h"

// Flash attention (Dao et al. 2022) over paged keys, split over the context.
// All queries of a session that share a head of keys are rows of one operand,
// so that keys and values are read once for them, each straight into the
// registers that the tensor cores want, in 16-byte loads: which element of a
// head is which k or n of an operand is free, and is chosen so that a lane's
// share is consecutive in memory. Shared memory serves the final merge alone.
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

// Where the warp's slice finds its keys and values.
struct Slice {
  const int* table;
  int kv_head;
  Range range;  // of the tile: nothing outside is read
};

__device__ inline size_t PlaceOf(const AttentionArgs& args, const Slice& slice,
                                 int position) {
  const int block = slice.table[position / kBlockLength];
  return ((static_cast<size_t>(block) * args.heads.num_kv_heads +
           slice.kv_head) *
              kBlockLength +
          position % kBlockLength) *
         args.heads.head_dim;
}

// q . k of 16 queries and 16 keys, those from `first`: scores[j].d is the part
// of an mma's D for keys first + 8j to first + 8j + 7.
template <typename T, int kDim>
__device__ void ScoreBlock(const AttentionArgs& args, const Slice& slice,
                           const QueryOperands<kDim>& queries, int first,
                           FragmentD (&scores)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    scores[j] = {};
    const int position = first + 8 * j + g;
    const bool is_seen =
        position >= slice.range.begin && position < slice.range.end;
    const size_t place = is_seen ? PlaceOf(args, slice, position) : 0;
#pragma unroll
    for (int c = 0; c < kDim / kChunk; ++c) {
      const int at = c * kChunk + 8 * t;
      const uint4 key =
          Load8(args.kv.keys, place + at, is_seen && at < args.heads.head_dim);
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
__device__ void AddValues(const AttentionArgs& args, const Slice& slice,
                          const FragmentD (&weights)[2], int first,
                          FragmentD (&sums)[kDim / 8]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int g = lane / 4, t = lane % 4;
  const FragmentA a = {{PackPair<T>(weights[0].d[0], weights[0].d[1]),
                        PackPair<T>(weights[0].d[2], weights[0].d[3]),
                        PackPair<T>(weights[1].d[0], weights[1].d[1]),
                        PackPair<T>(weights[1].d[2], weights[1].d[3])}};
#pragma unroll
  for (int span = 0; span < kDim / kSpan; ++span) {
    const int at = span * kSpan + 8 * g;
    uint4 values[4];  // of keys 2t, 2t + 1, 2t + 8, 2t + 9
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int position = first + i / 2 * 8 + 2 * t + i % 2;
      // Behind the range lies garbage, and 0 * NaN is not 0.
      const bool is_seen = position >= slice.range.begin &&
                           position < slice.range.end &&
                           at < args.heads.head_dim;
      const size_t place = is_seen ? PlaceOf(args, slice, position) : 0;
      values[i] = Load8(args.kv.values, place + at, is_seen);
    }
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

// Block (x, y, z): tile x, head y of the keys, split z.
template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads) SplitKernel(AttentionArgs args) {
  OUTRIDER_DYNAMIC_SHARED(float4, slice_sums);  // [kWarps][kFragments]
  OUTRIDER_SHARED(float2[kWarps * kTileQueries], slice_softmax);
  constexpr int kFragments = Scratch<kDim>::kFragments;
  const AttentionTile tile = args.tiles[blockIdx.x];
  const int kv_head = static_cast<int>(blockIdx.y);
  const int split = static_cast<int>(blockIdx.z);
  if (tile.num_rows == 0) return;
  const Slice slice = {args.tables + tile.first_table_entry, kv_head,
                       FindRange(args, tile)};
  if (slice.range.begin >= (split + 1) * kSplitKeys ||
      slice.range.end <= split * kSplitKeys) {
    return;
  }
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const int g = lane / 4, t = lane % 4;
  const Query mine[2] = {FindQuery(args, tile, kv_head, g),
                         FindQuery(args, tile, kv_head, g + 8)};
  const QueryOperands<kDim> queries = LoadQueries<kDim>(args, mine, t);

  Softmax softmax;
  FragmentD sums[kDim / 8] = {};
  const int begin = split * kSplitKeys + warp * kSliceKeys;
  for (int first = begin; first < begin + kSliceKeys; first += kBlockLength) {
    if (first >= slice.range.end) break;
    if (first + kBlockLength <= slice.range.begin) continue;
    FragmentD scores[2];
    ScoreBlock<T, kDim>(args, slice, queries, first, scores);
    float factor[2];
    Weigh(args, mine, first, scores, softmax, factor);
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sums[i].d[j] = __fmul_rn(sums[i].d[j], factor[j / 2]);
      }
    }
    AddValues<T, kDim>(args, slice, scores, first, sums);
  }

#pragma unroll
  for (int i = 0; i < kDim / 8; ++i) {
    slice_sums[warp * kFragments + i * kWarpSize + lane] =
        make_float4(sums[i].d[0], sums[i].d[1], sums[i].d[2], sums[i].d[3]);
  }
  if (t == 0) {
    for (int q = 0; q < 2; ++q) {
      slice_softmax[warp * kTileQueries + g + 8 * q] =
          make_float2(softmax.top[q], softmax.mass[q]);
    }
  }
  __syncthreads();

  const int num_splits = static_cast<int>(gridDim.z);
  const Scratch<kDim> scratch(args, num_splits, static_cast<int>(blockIdx.x),
                              kv_head);
  // A thread's lane is the same in all the fragments it joins.
  for (int i = thread; i < kFragments; i += kThreads) {
    Joined all;
    for (int w = 0; w < kWarps; ++w) {
      JoinPart(all, slice_sums[w * kFragments + i],
               slice_softmax[w * kTileQueries + g],
               slice_softmax[w * kTileQueries + g + 8]);
    }
    scratch.sums[static_cast<size_t>(split) * kFragments + i] = all.sum;
    if (i < kWarpSize && t == 0) {
      for (int q = 0; q < 2; ++q) {
        scratch.softmax[split * kTileQueries + g + 8 * q] =
            make_float2(all.top[q], all.mass[q]);
      }
    }
  }
}

// Block (x, y): tile x, head y of the keys. Joins the splits.
template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads)
    MergeKernel(AttentionArgs args, int num_splits) {
  constexpr int kFragments = Scratch<kDim>::kFragments;
  const AttentionTile tile = args.tiles[blockIdx.x];
  if (tile.num_rows == 0) return;
  const int kv_head = static_cast<int>(blockIdx.y);
  const Range range = FindRange(args, tile);
  const Scratch<kDim> scratch(args, num_splits, static_cast<int>(blockIdx.x),
                              kv_head);
  const int thread = static_cast<int>(threadIdx.x);
  const int g = thread % kWarpSize / 4, t = thread % 4;
  const Query mine[2] = {FindQuery(args, tile, kv_head, g),
                         FindQuery(args, tile, kv_head, g + 8)};
  for (int i = thread; i < kFragments; i += kThreads) {
    Joined all;
    for (int split = range.begin / kSplitKeys; split * kSplitKeys < range.end;
         ++split) {
      const float2* softmax = scratch.softmax + split * kTileQueries;
      JoinPart(all, scratch.sums[static_cast<size_t>(split) * kFragments + i],
               softmax[g], softmax[g + 8]);
    }
    // Operand j of a span, columns 2t and 2t + 1 (AddValues).
    const int operand = i / kWarpSize;
    const int at = operand / 8 * kSpan + 16 * t + operand % 8;
    const float sums[2][2] = {{all.sum.x, all.sum.y}, {all.sum.z, all.sum.w}};
    for (int q = 0; q < 2; ++q) {
      if (mine[q].end == 0) continue;
      for (int n = 0; n < 2; ++n) {
        if (at + 8 * n >= args.heads.head_dim) continue;
        static_cast<T*>(args.out)[mine[q].place + at + 8 * n] =
            FromFloat<T>(sums[q][n] / all.mass[q]);
      }
    }
  }
}

template <typename T, int kDim>
void Run(const AttentionArgs& args, Stream stream) {
  const int num_splits = NumSplits(args.longest);
  const size_t bytes = sizeof(float4) * kWarps * Scratch<kDim>::kFragments;
  Launch(dim3(args.num_tiles, args.heads.num_kv_heads, num_splits), kThreads,
         bytes, stream, SplitKernel<T, kDim>, args);
  Launch(dim3(args.num_tiles, args.heads.num_kv_heads), kThreads, 0, stream,
         MergeKernel<T, kDim>, args, num_splits);
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
