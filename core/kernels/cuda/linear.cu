// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/linear_parts.h"
#include "core/kernels/cuda/next_kernel.h"

// A decoding step is bound by reading the weights, once each. So the weights
// are the 16-row operand and the tokens come in eights: idle columns of the
// tensor cores cost nothing, and the products of 1 to 8 tokens take the time
// of one. Weights are read exactly once, in whole lines (packed_weight.h). What
// a warp reads waits in a ring of its own in shared memory, each lane's bytes
// where that lane itself takes them up: no barrier, and several chunks are
// always on their way, also from one tile of outputs to the next, and while the
// kernel that computes the inputs still runs.
namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = kSlices * kWarpSize;  // a warp sums a slice

// The shared memory of a block: for each warp a ring of chunks of k, and room
// for the sums of two tiles of outputs, so that those of one are added up while
// warps already write those of the next.
template <int kRowTiles>
struct Ring {
  static constexpr int kChunk = kOfTile + kRowTiles * kWarpSize;
  static constexpr int kSums = kRowTiles * kWarpSize;  // a warp's, of a tile
  // Three blocks have room on an SM of sm_90 (228 KiB, where each takes one
  // more), two on one of sm_80.
  static constexpr size_t kMostBytes = 75 << 10;
  static constexpr size_t kChunkBytes = sizeof(uint4) * kChunk * kSlices;
  static constexpr size_t kSumBytes = sizeof(uint4) * 2 * kSums * kSlices;
  static constexpr int kLength = (kMostBytes - kSumBytes) / kChunkBytes;
  static constexpr int kOfWarp = kLength * kChunk;
  static constexpr size_t kBytes = kLength * kChunkBytes + kSumBytes;
};

// Where a warp is in what it asks for: its slice of each of the block's tiles.
struct Place {
  int tile;
  int chunk;

  __device__ bool is_there(const LinearShape& shape) const {
    return tile < shape.num_tiles && chunk < shape.num_chunks;
  }
  __device__ void Next(const LinearShape& shape, int slice) {
    chunk += kSlices;
    if (chunk < shape.num_chunks) return;
    chunk = slice;
    tile += static_cast<int>(gridDim.x);
  }
};

// Block x: the x-th tile of 16 outputs, and every gridDim.x-th from there.
template <typename T, int kRowTiles>
__global__ void __launch_bounds__(kThreads, 3) FewRowsKernel(LinearArgs args) {
  using Mine = Ring<kRowTiles>;
  // [kSlices][Mine::kOfWarp], [2][kSlices][Mine::kSums]
  OUTRIDER_DYNAMIC_SHARED(uint4, shared);
  const int thread = static_cast<int>(threadIdx.x);
  const int slice = thread / kWarpSize, lane = thread % kWarpSize;
  uint4* const ring = shared + slice * Mine::kOfWarp + lane;
  uint4* const all_sums = shared + kSlices * Mine::kOfWarp;
  const LinearShape shape = ShapeOf(args);
  const Place begin = {static_cast<int>(blockIdx.x), slice};

  LetNextKernelBegin();
  Place asked = begin;
#pragma unroll
  for (int i = 0; i < Mine::kLength; ++i) {
    if (asked.is_there(shape)) {
      AskForWeights(args, shape, asked.tile, asked.chunk,
                    ring + i * Mine::kChunk);
    }
    asked.Next(shape, slice);
  }
  AwaitPreviousKernel();
  const auto ask_for_inputs = [&](int chunk, uint4* to) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      AskForInputs(args, r * kTileRows, chunk, to + kOfTile + r * kWarpSize);
    }
  };
  asked = begin;
#pragma unroll
  for (int i = 0; i < Mine::kLength; ++i) {
    if (asked.is_there(shape)) {
      ask_for_inputs(asked.chunk, ring + i * Mine::kChunk);
    }
    EndCopyGroup();  // an empty one too: groups are counted
    asked.Next(shape, slice);
  }

  int place = 0, half = 0;
#pragma unroll 1
  for (int tile = begin.tile; tile < shape.num_tiles;
       tile += static_cast<int>(gridDim.x)) {
    FragmentD sums[kRowTiles] = {};
#pragma unroll 1
    for (int chunk = slice; chunk < shape.num_chunks; chunk += kSlices) {
      WaitForCopies<Mine::kLength - 1>();
      uint4* const now = ring + place * Mine::kChunk;
      MultiplyChunk<T>(now, now + kOfTile, sums);
      if (asked.is_there(shape)) {
        AskForWeights(args, shape, asked.tile, asked.chunk, now);
        ask_for_inputs(asked.chunk, now);
      }
      EndCopyGroup();
      asked.Next(shape, slice);
      place = place + 1 == Mine::kLength ? 0 : place + 1;
    }

    // 16 consecutive bytes a lane: no two lanes of a quarter warp, which go
    // to the banks together, meet in one.
    uint4* const parts = all_sums + half * kSlices * Mine::kSums;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      parts[slice * Mine::kSums + r * kWarpSize + lane] = BitsOf(sums[r]);
    }
    __syncthreads();
    if (thread < Mine::kSums) {
      float4 sum = FloatsOf(parts[thread]);
      for (int s = 1; s < kSlices; ++s) {
        sum = Add(sum, FloatsOf(parts[s * Mine::kSums + thread]));
      }
      const int row = thread / kWarpSize * kTileRows + lane % 4 * 2;
      Store<T>(args, tile, row, lane / 4, sum);
    }
    half = 1 - half;
  }
}

template <typename T, int kRowTiles>
void Run(const LinearArgs& args, Stream stream) {
  constexpr size_t kBytes = Ring<kRowTiles>::kBytes;
  const auto kernel = FewRowsKernel<T, kRowTiles>;
  static const int resident = ResidentBlocks(kernel, kThreads, kBytes);
  const int num_tiles = CeilDiv(args.weight.out, kTileOut);
  LaunchEarly(num_tiles < resident ? num_tiles : resident, kThreads, kBytes,
              stream, kernel, args);
}

// How many rows a block takes changes how often tokens are read, and never the
// order of a sum.
template <typename T>
void RunRows(const LinearArgs& args, Stream stream) {
  if (args.num_rows <= kTileRows) return Run<T, 1>(args, stream);
  return Run<T, kMostFewRows / kTileRows>(args, stream);
}

}  // namespace

void Linear(const LinearArgs& args, Stream stream) {
  if (args.num_rows > kMostFewRows) return LinearOfManyRows(args, stream);
  if (args.weight.element == Element::kBFloat16) {
    RunRows<Bf16>(args, stream);
  } else {
    RunRows<Half>(args, stream);
  }
}

}  // namespace outrider::kernels::cuda
