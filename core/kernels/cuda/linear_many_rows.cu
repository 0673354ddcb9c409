// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/linear_parts.h"
#include "core/kernels/cuda/next_kernel.h"

// With many tokens it is these that are read often: once for each block of
// outputs. So a block takes as many outputs as it has warps times 16, and its
// warps share the tokens of a chunk. Each warp goes through all of k, slice
// after slice, and adds them up as it goes: the order of linear.cu, where a
// slice is a warp's, and the same bits.
namespace outrider::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarpSize;

// The shared memory of a block: a ring of chunks of k, the weights of each
// warp's tile of outputs and the inputs of all tiles of tokens.
template <int kRowTiles>
struct Ring {
  static constexpr int kWeights = kWarps * kOfTile;
  static constexpr int kChunk = kWeights + kRowTiles * kWarpSize;
  // Two blocks have room on an SM of sm_90, one on one of sm_86 (99 KiB).
  static constexpr size_t kMostBytes = 96 << 10;
  static constexpr int kLength = kMostBytes / (sizeof(uint4) * kChunk);
  static constexpr size_t kBytes = sizeof(uint4) * kChunk * kLength;
};

// The chunks of k in the order of the sum.
struct Place {
  int slice = 0;
  int chunk = 0;

  __device__ void Next(int num_chunks) {
    chunk += kSlices;
    while (chunk >= num_chunks && slice < kSlices) chunk = ++slice;
  }
  __device__ bool is_there() const { return slice < kSlices; }
};

// Block (x, y): the x-th kRowTiles * 8 tokens, the y-th kWarps * 16 outputs.
// Neighbours in x read the same weights at about the same time: long passes
// take them from the second-level cache.
template <typename T, int kRowTiles>
__global__ void __launch_bounds__(kThreads, 2) ManyRowsKernel(LinearArgs args) {
  using Mine = Ring<kRowTiles>;
  OUTRIDER_DYNAMIC_SHARED(uint4, ring);  // [kLength][kChunk]
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const LinearShape shape = ShapeOf(args);
  const int first_row = static_cast<int>(blockIdx.x) * kRowTiles * kTileRows;
  // Beyond the last tile that one is read again, and not stored.
  const int tile = static_cast<int>(blockIdx.y) * kWarps + warp;
  const int read = min(tile, shape.num_tiles - 1);
  uint4* const weights = ring + warp * kOfTile + lane;
  uint4* const inputs = ring + Mine::kWeights + lane;
  const bool brings_inputs = warp < kRowTiles;  // those of one tile of tokens
  const auto ask_for_inputs = [&](int chunk, int place) {
    if (!brings_inputs) return;
    AskForInputs(args, first_row + warp * kTileRows, chunk,
                 inputs + place * Mine::kChunk + warp * kWarpSize);
  };

  LetNextKernelBegin();
  Place asked;
#pragma unroll 1
  for (int i = 0; i + 1 < Mine::kLength && asked.is_there(); ++i) {
    AskForWeights(args, shape, read, asked.chunk, weights + i * Mine::kChunk);
    asked.Next(shape.num_chunks);
  }
  AwaitPreviousKernel();
  asked = {};
#pragma unroll 1
  for (int i = 0; i + 1 < Mine::kLength; ++i) {
    if (asked.is_there()) {
      ask_for_inputs(asked.chunk, i);
      asked.Next(shape.num_chunks);
    }
    EndCopyGroup();  // an empty one too: groups are counted
  }

  FragmentD totals[kRowTiles] = {}, sums[kRowTiles] = {};
  int place = 0;
  Place now;
#pragma unroll 1
  for (int slice = 0; slice < kSlices; ++slice) {
#pragma unroll 1
    for (; now.slice == slice; now.Next(shape.num_chunks)) {
      // All have what they asked for, and are done with the chunk before.
      WaitForCopies<Mine::kLength - 2>();
      __syncthreads();
      MultiplyChunk<T>(weights + place * Mine::kChunk,
                       inputs + place * Mine::kChunk, sums);
      const int free = place == 0 ? Mine::kLength - 1 : place - 1;
      if (asked.is_there()) {
        AskForWeights(args, shape, read, asked.chunk,
                      weights + free * Mine::kChunk);
        ask_for_inputs(asked.chunk, free);
        asked.Next(shape.num_chunks);
      }
      EndCopyGroup();
      place = place + 1 == Mine::kLength ? 0 : place + 1;
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        totals[r].d[i] =
            slice == 0 ? sums[r].d[i] : __fadd_rn(totals[r].d[i], sums[r].d[i]);
      }
      sums[r] = {};
    }
  }
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
    Store<T>(args, tile, first_row + r * kTileRows + lane % 4 * 2, lane / 4,
             FloatsOf(BitsOf(totals[r])));
  }
}

template <typename T, int kRowTiles>
void Run(const LinearArgs& args, Stream stream) {
  const dim3 blocks(CeilDiv(args.num_rows, kRowTiles * kTileRows),
                    CeilDiv(args.weight.out, kWarps * kTileOut));
  LaunchEarly(blocks, kThreads, Ring<kRowTiles>::kBytes, stream,
              ManyRowsKernel<T, kRowTiles>, args);
}

template <typename T>
void RunRows(const LinearArgs& args, Stream stream) {
  if (args.num_rows <= 32) return Run<T, 4>(args, stream);
  return Run<T, 8>(args, stream);
}

}  // namespace

void LinearOfManyRows(const LinearArgs& args, Stream stream) {
  if (args.weight.element == Element::kBFloat16) {
    RunRows<Bf16>(args, stream);
  } else {
    RunRows<Half>(args, stream);
  }
}

}  // namespace outrider::kernels::cuda
