// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <cstdint>

#include "core/kernels/cpu/make_kernel_table.h"
#include "core/kernels/cpu/vector_avx512.h"

// bfloat16 linear layers on AMX tiles of 16 rows by 64 bytes. tdpbf16ps takes
// as long for 16 rows of x as the second cache needs to deliver their weights,
// a tenth of what the memory needs: sixteen rows cost what one does.
namespace outrider::kernels::cpu {
namespace {

// A type of its own, for this file is compiled with more instructions than the
// levels below.
struct VectorAmx : VectorAvx512 {};

constexpr int kTileRows = 16;
constexpr int kTileSteps = 16;  // pairs of k in a tile, of weights and of x
constexpr int kTileValues = 2 * kTileSteps;

// The rows of x, cut into tiles of equally many rows; the last one is filled up
// with zeros. x stands in scratch as [tiles][k tiles][rows of a tile][32].
struct RowTiles {
  int num_tiles;
  int num_rows;    // of each tile
  int num_ktiles;  // along k

  static OUTRIDER_KERNEL_INLINE RowTiles Of(const LinearTask& task) {
    const int num_tiles = (task.num_rows + kTileRows - 1) / kTileRows;
    return {num_tiles, (task.num_rows + num_tiles - 1) / num_tiles,
            PackedLayout::BFloat16Steps(task.in) / kTileSteps};
  }
  OUTRIDER_KERNEL_INLINE size_t TileSize() const {
    return static_cast<size_t>(num_ktiles) * num_rows * kTileValues;
  }
};

void PrepareTiles(const LinearTask& task, int first_row, int end_row) {
  const RowTiles tiles = RowTiles::Of(task);
  auto* x = reinterpret_cast<BFloat16*>(task.scratch);
  // Whoever prepares the last row also clears those after it.
  const int end =
      end_row < task.num_rows ? end_row : tiles.num_tiles * tiles.num_rows;
  for (int m = first_row; m < end; ++m) {
    const float* row = task.x + static_cast<size_t>(m) * task.in;
    BFloat16* to = x + tiles.TileSize() * (m / tiles.num_rows) +
                   m % tiles.num_rows * kTileValues;
    for (int k = 0; k < tiles.num_ktiles * kTileValues; k += kTileRows) {
      const int left = m < task.num_rows ? task.in - k : 0;
      const int n = left < 0 ? 0 : left < kTileRows ? left : kTileRows;
      BFloat16* place =
          to + k / kTileValues * tiles.num_rows * kTileValues + k % kTileValues;
      VectorAmx::StoreFirst(place, VectorAmx::LoadFirst(row + k, n), kTileRows);
    }
  }
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t num_rows[16] = {};
};

// Tiles 0 to 5 are sums, 6 is x and 7 weights.
OUTRIDER_KERNEL_INLINE void ConfigureTiles(int num_rows) {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.num_rows[i] = static_cast<uint8_t>(i == 7 ? kTileSteps : num_rows);
  }
  // gcc 12 believes that the instruction reads the first 8 bytes only.
  __asm__ volatile("" ::"r"(&config) : "memory");
  _tile_loadconfig(&config);
}

// Adds the sums of one block of outputs for the rows of a tile to y, or puts
// them there.
OUTRIDER_KERNEL_INLINE void WriteSums(const LinearTask& task, const float* sums,
                                      int first_row, int num_rows,
                                      int first_output) {
  const int left = task.out - first_output;
  if (left <= 0) return;
  const int n = left < PackedLayout::kBlock ? left : PackedLayout::kBlock;
  const __m512 bias = task.bias == nullptr
                          ? VectorAmx::Zero()
                          : VectorAmx::LoadFirst(task.bias + first_output, n);
  for (int m = 0; m < num_rows && first_row + m < task.num_rows; ++m) {
    float* place =
        task.y + static_cast<size_t>(first_row + m) * task.out + first_output;
    __m512 sum = VectorAmx::Load(sums + m * PackedLayout::kBlock);
    if (task.bias != nullptr) sum = sum + bias;
    if (task.add) sum = sum + VectorAmx::LoadFirst(place, n);
    VectorAmx::StoreFirst(place, sum, n);
  }
}

// A group of kBlocks blocks for one or two tiles of rows, from tile `first` on.
// The names of tile registers are part of the instructions, hence no loops.
template <int kBlocks, int kTiles>
void MultiplyTiles(const LinearTask& task, const RowTiles& tiles, int first,
                   int first_output, const float* weight) {
  constexpr int kStride = kBlocks * 64;
  const auto* x0 = reinterpret_cast<const BFloat16*>(task.scratch) +
                   tiles.TileSize() * first;
  const auto* x1 = x0 + tiles.TileSize();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int k = 0; k < tiles.num_ktiles; ++k) {
    _tile_loadd(7, weight, kStride);
    _tile_loadd(6, x0, 64);
    _tile_dpbf16ps(0, 6, 7);
    if constexpr (kTiles > 1) {
      _tile_loadd(6, x1, 64);
      _tile_dpbf16ps(3, 6, 7);
    }
    if constexpr (kBlocks > 1) {
      _tile_loadd(7, weight + 16, kStride);
      if constexpr (kTiles > 1) {
        _tile_dpbf16ps(4, 6, 7);
        _tile_loadd(6, x0, 64);
      }
      _tile_dpbf16ps(1, 6, 7);
    }
    if constexpr (kBlocks > 2) {
      _tile_loadd(7, weight + 32, kStride);
      _tile_dpbf16ps(2, 6, 7);
      if constexpr (kTiles > 1) {
        _tile_loadd(6, x1, 64);
        _tile_dpbf16ps(5, 6, 7);
      }
    }
    weight += kTileSteps * kBlocks * PackedLayout::kBlock;
    x0 += tiles.num_rows * kTileValues;
    x1 += tiles.num_rows * kTileValues;
  }

  alignas(64) float sums[6][kTileRows * PackedLayout::kBlock];
  _tile_stored(0, sums[0], 64);
  if constexpr (kBlocks > 1) _tile_stored(1, sums[1], 64);
  if constexpr (kBlocks > 2) _tile_stored(2, sums[2], 64);
  if constexpr (kTiles > 1) {
    _tile_stored(3, sums[3], 64);
    if constexpr (kBlocks > 1) _tile_stored(4, sums[4], 64);
    if constexpr (kBlocks > 2) _tile_stored(5, sums[5], 64);
  }
  for (int tile = 0; tile < kTiles; ++tile) {
    for (int block = 0; block < kBlocks; ++block) {
      WriteSums(task, sums[3 * tile + block], (first + tile) * tiles.num_rows,
                tiles.num_rows, first_output + block * PackedLayout::kBlock);
    }
  }
}

// All rows over a group: it is read from memory once and stays in the cache.
template <int kBlocks>
OUTRIDER_KERNEL_INLINE void MultiplyRows(const LinearTask& task,
                                         const RowTiles& tiles,
                                         int first_output,
                                         const float* weight) {
  int tile = 0;
  for (; tile + 2 <= tiles.num_tiles; tile += 2) {
    MultiplyTiles<kBlocks, 2>(task, tiles, tile, first_output, weight);
  }
  if (tile < tiles.num_tiles) {
    MultiplyTiles<kBlocks, 1>(task, tiles, tile, first_output, weight);
  }
}

void MultiplyGroupsByTiles(const LinearTask& task, int first_group,
                           int end_group) {
  const RowTiles tiles = RowTiles::Of(task);
  ConfigureTiles(tiles.num_rows);
  ForEachGroup(task, PackedLayout::BFloat16Steps(task.in), first_group,
               end_group, [&](int size, int first_output, const float* weight) {
                 if (size == 3) {
                   MultiplyRows<3>(task, tiles, first_output, weight);
                 } else if (size == 2) {
                   MultiplyRows<2>(task, tiles, first_output, weight);
                 } else {
                   MultiplyRows<1>(task, tiles, first_output, weight);
                 }
               });
  // Tiles in use make every switch of threads save 8 KiB more.
  _tile_release();
}

}  // namespace

constinit const KernelTable kAmxBf16Table = MakeKernelTable<VectorAmx>(
    {.prepare = PrepareTiles, .multiply = MultiplyGroupsByTiles});

}  // namespace outrider::kernels::cpu
