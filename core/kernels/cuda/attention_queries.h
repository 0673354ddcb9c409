// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_QUERIES_H_
#define OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_QUERIES_H_

#include "core/kernels/cuda/attention.h"
#include "core/kernels/cuda/device.h"

// Says for attention.cu which query is where, and what it sees.
namespace outrider::kernels::cuda {

struct Pair {
  int tile;
  int split;
};

// The pair of this number. A warp looks at 32 tiles at a time for the last one
// whose first pair is not after it: that is the pair's own tile, or the last of
// those beside it. One of nobody has a tile without rows, or a split after its
// keys.
__device__ inline Pair FindPair(const AttentionArgs& args, int number) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  int step = 1;
  while (step * kWarpSize < args.num_tiles) step *= kWarpSize;
  int last = 0;
  for (; step > 0; step /= kWarpSize) {
    const int at = last + lane * step;
    const bool is_before =
        at < args.num_tiles && args.tiles[at].first_pair <= number;
    last += (__popc(__ballot_sync(kAllLanes, is_before)) - 1) * step;
  }
  const int num_beside = args.tiles[last].num_beside;
  const int beyond = number - args.tiles[last].first_pair;
  const int split = (beyond + num_beside - 1) / num_beside;
  return {last + beyond - split * num_beside, split};
}

// One query of a tile, and the positions it sees: [begin, end).
struct Query {
  size_t place;  // its first element in `queries` and `out`
  int begin;
  int end;  // `begin` if the tile has no such query
};

__device__ inline Query FindQuery(const AttentionArgs& args,
                                  const AttentionTile& tile, int kv_head,
                                  int index) {
  const int group = args.heads.num_heads / args.heads.num_kv_heads;
  const int query = tile.first_query + index;
  const int row = query / group;
  if (row >= tile.num_rows) return {0, 0, 0};
  const int end = tile.first_position + row + 1;
  const int begin = args.window > 0 ? max(0, end - args.window) : 0;
  const size_t head =
      static_cast<size_t>(tile.first_row + row) * args.heads.num_heads +
      kv_head * group + query % group;
  return {head * args.heads.head_dim, begin, end};
}

// The positions that some query of the tile sees: [begin, end).
struct Range {
  int begin;
  int end;
};

__device__ inline Range FindRange(const AttentionArgs& args,
                                  const AttentionTile& tile) {
  const int group = args.heads.num_heads / args.heads.num_kv_heads;
  const int last_query =
      min(tile.num_rows * group, tile.first_query + kTileQueries) - 1;
  const int first = FindQuery(args, tile, 0, 0).begin;
  return {first, tile.first_position + last_query / group + 1};
}

// Eight consecutive elements of a head, or zeros. The kernel in front writes
// them, maybe while this one has begun: __ldg is for what nobody writes.
__device__ inline uint4 Load8(const void* elements, size_t place,
                              bool is_there) {
  if (!is_there) return make_uint4(0, 0, 0, 0);
  return *reinterpret_cast<const uint4*>(
      static_cast<const uint16_t*>(elements) + place);
}

__device__ inline uint32_t Word(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_QUERIES_H_
