// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_H_
#define OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_H_

#include <cstddef>

#include "core/kernels/cuda/element.h"
#include "core/kernels/cuda/rotate_store.h"

namespace outrider::kernels::cuda {

// Has up to kTileQueries queries of one session that share a head of keys:
// query q of a session's rows is that of row q / group, head q % group of the
// group, where group = num_heads / num_kv_heads.
struct AttentionTile {
  int first_table_entry = 0;  // of the session's block table in `tables`
  int first_row = 0;          // of the session's rows in the pass
  int num_rows = 0;           // of the session; 0: nothing to do
  int first_position = 0;     // of the first of them
  int first_query = 0;        // of the tile: a multiple of kTileQueries
  int first_pair = 0;         // the tile's, with the session's first keys
  int num_beside = 1;         // tiles whose pairs take turns with the tile's
};
constexpr int kTileQueries = 16;

// Keys of one block of threads: positions [i * kSplitKeys, (i + 1) *
// kSplitKeys) of a session, whatever its length.
constexpr int kSplitKeys = 256;

// What a block of threads has is a pair of a tile and a split. Pairs are
// numbered: a tile's with split s is first_pair + s * num_beside. Tiles of one
// session that follow one another, `num_beside` of them, have first pairs that
// do so too, so that neighbours read the same keys at about the same time.
// After their pairs come those of the tiles behind them, at once or later: no
// tile's first pair is before that of the tile in front. Numbers that no tile
// needs, between or after others, are of nobody; the first tile's first pair is
// not after the first number of a launch.

struct AttentionArgs {
  Element element = Element::kBFloat16;  // of queries, keys, values and out
  Heads heads = {};
  const void* queries = nullptr;  // [rows, num_heads, head_dim]
  KvLayer kv = {};
  const int* tables = nullptr;           // blocks of all sessions
  const AttentionTile* tiles = nullptr;  // [num_tiles]
  int num_tiles = 0;
  // What is done: tiles all of whose pairs are among these, and no others. No
  // tile has some among them and some not.
  int first_pair = 0;
  int num_pairs = 0;
  int window = 0;            // keys a row sees, its own included; 0: all
  float scale = 1.0f;        // of q . k, before the softmax
  float* scratch = nullptr;  // AttentionScratchFloats, aligned to 16 bytes
  void* out = nullptr;       // [rows, num_heads, head_dim]
};

inline int NumTiles(int num_rows, int group) {
  return (num_rows * group + kTileQueries - 1) / kTileQueries;
}

// Splits of a session of this length.
inline int NumSplits(int length) {
  return (length + kSplitKeys - 1) / kSplitKeys;
}

// What `scratch` holds for so many pairs.
inline size_t AttentionScratchFloats(const Heads& heads, int num_pairs) {
  const size_t dim = heads.head_dim <= 64 ? 64 : 128;
  const size_t parts = static_cast<size_t>(num_pairs) * heads.num_kv_heads;
  return parts * kTileQueries * (dim + 2);
}

// The row at position p attends over exactly the keys of its own session's
// positions [max(0, p - window + 1), p], which the blocks already hold: sums in
// float32, the softmax's weights rounded to the keys' type before they meet the
// values. A row's bits depend on its own query and its own keys only: keys are
// cut into splits, slices and blocks at absolute positions, and the parts are
// merged in their order.
void Attention(const AttentionArgs& args, Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_H_
