// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/linear_parts.h"
#include "core/kernels/cuda/linear_store.h"
#include "core/kernels/cuda/next_kernel.h"

// With many tokens a product is bound by what is read again and again: tokens
// for each block of outputs, weights for each block of tokens. So a block has
// 128 of both, which its warps share. Each warp goes through all of k, slice
// after slice, and adds them up as it goes: the order of linear.cu, where a
// slice is a warp's, and the same bits.
namespace outrider::kernels::cuda {
namespace {

// kOutWarps warps differ in their outputs, kRowWarps in their tokens: each of
// the block's warps is one of either.
constexpr int kOutWarps = 4, kRowWarps = 2;
constexpr int kWarps = kOutWarps * kRowWarps;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kOutTiles = 2, kRowTiles = 8;  // of a warp
constexpr int kBlockOutTiles = kOutWarps * kOutTiles;
constexpr int kBlockRowTiles = kRowWarps * kRowTiles;
static_assert(kBlockOutTiles == kWarps, "each warp asks for one");
static_assert(kBlockRowTiles * kTileRows == kManyRowsBlock.rows);
static_assert(kBlockOutTiles * kTileOut == kManyRowsBlock.outputs);

// The shared memory of a block: a ring of chunks of k, of all its tiles of
// outputs and, after them, all its tiles of tokens.
constexpr int kInputs = kBlockOutTiles * kOfTile;
constexpr int kChunk = kInputs + kBlockRowTiles * kWarpSize;
constexpr int kLength = 6;
constexpr size_t kBytes = sizeof(uint4) * kChunk * kLength;

// The chunks of k in the order of the sum.
struct Place {
  int slice = 0;
  int chunk = 0;

  __device__ bool is_there() const { return slice < kSlices; }
  // Slices that have no chunk are passed over.
  __device__ Place Following(int num_chunks) const {
    Place next = {slice, chunk + kSlices};
    while (next.chunk >= num_chunks && next.is_there()) {
      next.chunk = ++next.slice;
    }
    return next;
  }
};

// Adds the sums of slices [first, end) to the totals: those after the first
// have no chunk, and a zero.
__device__ inline void EndSlices(int first, int end,
                                 FragmentD (&sums)[kOutTiles][kRowTiles],
                                 FragmentD (&totals)[kOutTiles][kRowTiles]) {
#pragma unroll
  for (int o = 0; o < kOutTiles; ++o) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& total = totals[o][r].d[i];
        const float sum = sums[o][r].d[i];
        total = first == 0 ? sum : __fadd_rn(total, sum);
        if (end > first + 1) total = __fadd_rn(total, 0.0f);
      }
      sums[o][r] = {};
    }
  }
}

// Block (x, y): the x-th 128 tokens, the y-th 128 outputs. Neighbours in x read
// the same weights at about the same time: from the second-level cache.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1) ManyRowsKernel(LinearArgs args) {
  OUTRIDER_DYNAMIC_SHARED(uint4, ring);  // [kLength][kChunk]
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const LinearShape shape = ShapeOf(args);
  const int first_row =
      static_cast<int>(blockIdx.x) * kBlockRowTiles * kTileRows;
  const int first_tile = static_cast<int>(blockIdx.y) * kBlockOutTiles;
  // What is beyond the last tile is not stored: that one is read again.
  const int read_tile = min(first_tile + warp, shape.num_tiles - 1);
  const auto ask_for_weights = [&](int place, int chunk) {
    AskForWeights(args, shape, read_tile, chunk,
                  ring + place * kChunk + warp * kOfTile + lane);
  };
  const auto ask_for_inputs = [&](int place, int chunk) {
#pragma unroll
    for (int i = 0; i < kBlockRowTiles / kWarps; ++i) {
      const int r = warp + i * kWarps;
      AskForInputs(args, first_row + r * kTileRows, chunk,
                   ring + place * kChunk + kInputs + r * kWarpSize + lane);
    }
  };

  Place asked;
#pragma unroll 1
  for (int i = 0; i + 1 < kLength && asked.is_there(); ++i) {
    ask_for_weights(i, asked.chunk);
    asked = asked.Following(shape.num_chunks);
  }
  AwaitPreviousKernel();
  asked = {};
#pragma unroll 1
  for (int i = 0; i + 1 < kLength; ++i) {
    if (asked.is_there()) {
      ask_for_inputs(i, asked.chunk);
      asked = asked.Following(shape.num_chunks);
    }
    EndCopyGroup();  // an empty one too: groups are counted
  }

  const int out_warp = warp % kOutWarps, row_warp = warp / kOutWarps;
  const uint4* const weights = ring + out_warp * kOutTiles * kOfTile + lane;
  const uint4* const inputs =
      ring + kInputs + row_warp * kRowTiles * kWarpSize + lane;
  FragmentD totals[kOutTiles][kRowTiles] = {}, sums[kOutTiles][kRowTiles] = {};
  Operands<kOutTiles, kRowTiles> now, next;
  WaitForCopies<kLength - 2>();
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) LoadPart(weights, inputs, r, now);
  Place at;
  int place = 0;
#pragma unroll 2
  while (at.is_there()) {
    const Place after = at.Following(shape.num_chunks);
    const int place_after = place + 1 == kLength ? 0 : place + 1;
    // All have what they asked for, and have taken up the chunk that was where
    // the next one goes. After the last chunk anything is loaded.
    WaitForCopies<kLength - 3>();
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      LoadPart(weights + place_after * kChunk, inputs + place_after * kChunk, r,
               next);
      MultiplyPart<T>(now, r, sums);
    }
    if (asked.is_there()) {
      const int free = place == 0 ? kLength - 1 : place - 1;
      ask_for_weights(free, asked.chunk);
      ask_for_inputs(free, asked.chunk);
      asked = asked.Following(shape.num_chunks);
    }
    EndCopyGroup();
    if (after.slice != at.slice) EndSlices(at.slice, after.slice, sums, totals);
    now = next;
    at = after;
    place = place_after;
  }
#pragma unroll
  for (int o = 0; o < kOutTiles; ++o) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      const int row =
          first_row + (row_warp * kRowTiles + r) * kTileRows + lane % 4 * 2;
      Store<T>(args, first_tile + out_warp * kOutTiles + o, row, lane / 4,
               FloatsOf(BitsOf(totals[o][r])));
    }
  }
}

template <typename T>
void Run(const LinearArgs& args, Stream stream) {
  const dim3 blocks(CeilDiv(args.num_rows, kManyRowsBlock.rows),
                    CeilDiv(args.weight.out, kManyRowsBlock.outputs));
  LaunchEarly(blocks, kThreads, kBytes, stream, ManyRowsKernel<T>, args);
}

}  // namespace

void LinearOfManyRows(const LinearArgs& args, Stream stream) {
  if (args.weight.element == Element::kBFloat16) {
    Run<Bf16>(args, stream);
  } else {
    Run<Half>(args, stream);
  }
}

}  // namespace outrider::kernels::cuda
