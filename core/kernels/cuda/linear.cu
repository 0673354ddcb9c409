// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/linear_parts.h"
#include "core/kernels/cuda/linear_store.h"
#include "core/kernels/cuda/next_kernel.h"
#include "core/kernels/cuda/runtime.h"

// A decoding step is bound by reading the weights, once each. So the weights
// are the 16-row operand and the tokens come in eights: idle columns of the
// tensor cores cost nothing, and the products of 1 to 8 tokens take the time
// of one. Weights are read exactly once, in whole lines (packed_weight.h). What
// a warp reads waits in a ring of its own in shared memory, each lane's bytes
// where that lane itself takes them up: no barrier. A whole ring of weights is
// asked for before the kernel in front has written inputs, and inputs after it.
// As copies come in the order of their groups, the first wait is for all of
// these weights; from there on several chunks are on their way.
namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = kSlices * kWarpSize;  // a warp sums a slice

// The shared memory of a block: for each warp a ring of chunks of k. A chunk is
// both operands A of each tile of outputs and, for each tile of tokens, eight
// inputs of a token for each lane, its share of both operands B.
template <int kOutTiles, int kRowTiles>
struct Ring {
  static constexpr int kInputs = kOutTiles * kOfTile;  // where they begin
  static constexpr int kChunk = kInputs + kRowTiles * kWarpSize;
  // Two blocks have room on an SM of sm_90, one on others (99 KiB on sm_86).
  static constexpr size_t kMostBytes = 96 << 10;
  static constexpr size_t kChunkBytes = sizeof(uint4) * kChunk * kSlices;
  static constexpr int kLength = kMostBytes / kChunkBytes;
  static constexpr int kOfWarp = kLength * kChunk;
  static constexpr size_t kBytes = kLength * kChunkBytes;
};

// The warp's slice of k, for kOutTiles tiles of outputs and kRowTiles of
// tokens. `ring` is the lane's own place in the warp's.
template <typename T, int kOutTiles, int kRowTiles>
__device__ void SumSlice(const LinearArgs& args, int first_tile, int first_row,
                         uint4* ring, FragmentD (&sums)[kOutTiles][kRowTiles]) {
  using Mine = Ring<kOutTiles, kRowTiles>;
  const int slice = static_cast<int>(threadIdx.x) / kWarpSize;
  const LinearShape shape = ShapeOf(args);
  const auto ask_for_weights = [&](int place, int chunk) {
    if (chunk >= shape.num_chunks) return;
#pragma unroll
    for (int o = 0; o < kOutTiles; ++o) {
      // What is beyond the last tile is not stored: that one is read again.
      AskForWeights(args, shape, min(first_tile + o, shape.num_tiles - 1),
                    chunk, ring + place * Mine::kChunk + o * kOfTile);
    }
  };
  const auto ask_for_inputs = [&](int place, int chunk) {
    if (chunk < shape.num_chunks) {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        AskForInputs(
            args, first_row + r * kTileRows, chunk,
            ring + place * Mine::kChunk + Mine::kInputs + r * kWarpSize);
      }
    }
    EndCopyGroup();  // an empty one too: groups are counted
  };

#pragma unroll
  for (int i = 0; i < Mine::kLength; ++i) {
    ask_for_weights(i, slice + i * kSlices);
  }
  AwaitPreviousKernel();
#pragma unroll
  for (int i = 0; i < Mine::kLength; ++i) {
    ask_for_inputs(i, slice + i * kSlices);
  }
  int place = 0;
#pragma unroll 1
  for (int chunk = slice; chunk < shape.num_chunks; chunk += kSlices) {
    WaitForCopies<Mine::kLength - 1>();
    const uint4* now = ring + place * Mine::kChunk;
    Operands<kOutTiles, kRowTiles> operands;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      LoadPart(now, now + Mine::kInputs, r, operands);
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) MultiplyPart<T>(operands, r, sums);
    ask_for_weights(place, chunk + Mine::kLength * kSlices);
    ask_for_inputs(place, chunk + Mine::kLength * kSlices);
    place = place + 1 == Mine::kLength ? 0 : place + 1;
  }
}

// Block (x, y): the x-th kRowTiles * 8 tokens, the y-th kOutTiles * 16 outputs.
// Neighbours in x read the same weights at about the same time: long passes
// take them from the second-level cache.
template <typename T, int kOutTiles, int kRowTiles>
__global__ void __launch_bounds__(kThreads, kRowTiles < 8 ? 2 : 1)
    LinearKernel(LinearArgs args) {
  using Mine = Ring<kOutTiles, kRowTiles>;
  OUTRIDER_DYNAMIC_SHARED(uint4, rings);  // [kSlices][Mine::kOfWarp]
  const int first_row = static_cast<int>(blockIdx.x) * kRowTiles * kTileRows;
  const int first_tile = static_cast<int>(blockIdx.y) * kOutTiles;
  const int thread = static_cast<int>(threadIdx.x);
  LetNextKernelBegin(args.num_rows);
  // The warp's sums go where its ring was: what it asked for has come.
  uint4* const mine =
      rings + thread / kWarpSize * Mine::kOfWarp + thread % kWarpSize;
  FragmentD sums[kOutTiles][kRowTiles] = {};
  SumSlice<T>(args, first_tile, first_row, mine, sums);

  constexpr int kFragments = kRowTiles * kWarpSize;
#pragma unroll
  for (int o = 0; o < kOutTiles; ++o) {
    // 16 consecutive bytes a lane: no two lanes of a quarter warp, which go
    // to the banks together, meet in one.
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      mine[r * kWarpSize] = BitsOf(sums[o][r]);
    }
    __syncthreads();
    for (int i = thread; i < kFragments; i += kThreads) {
      float4 sum = FloatsOf(rings[i]);
      for (int s = 1; s < kSlices; ++s) {
        sum = Add(sum, FloatsOf(rings[s * Mine::kOfWarp + i]));
      }
      const int row = first_row + i / kWarpSize * kTileRows + i % 4 * 2;
      Store<T>(args, first_tile + o, row, i % kWarpSize / 4, sum);
    }
    __syncthreads();  // before the next tiles' sums
  }
}

template <typename T, int kOutTiles, int kRowTiles>
void Run(const LinearArgs& args, Stream stream) {
  const dim3 blocks(CeilDiv(args.num_rows, kRowTiles * kTileRows),
                    CeilDiv(args.weight.out, kOutTiles * kTileOut));
  LaunchEarly(blocks, kThreads, Ring<kOutTiles, kRowTiles>::kBytes, stream,
              LinearKernel<T, kOutTiles, kRowTiles>, args);
}

// How many tiles a block takes changes how often tokens are read, and never
// the order of a sum.
template <typename T>
void RunRows(const LinearArgs& args, Stream stream) {
  if (args.num_rows <= 8) return Run<T, 1, 1>(args, stream);
  if (args.num_rows <= 16) return Run<T, 1, 2>(args, stream);
  if (args.num_rows <= 32) return Run<T, 1, 4>(args, stream);
  constexpr LinearBlock kMost = kFewRowsBlock;
  return Run<T, kMost.outputs / kTileOut, kMost.rows / kTileRows>(args, stream);
}

// How often all multiprocessors are given a block, the last time only some.
// Of either kernel one holds a single block, by its registers.
int NumWaves(const LinearArgs& args, const LinearBlock& block,
             int num_processors) {
  return CeilDiv(CeilDiv(args.num_rows, block.rows) *
                     CeilDiv(args.weight.out, block.outputs),
                 num_processors);
}

}  // namespace

// What decides is how many waves either kernel needs. A block of many rows has
// eight times as much to do as one of few. It took an H100 4.4 to 4.6 times as
// long in the products of an 8B model, 3.9 to 5.7 times in those of a 1B model:
// 512 rows by waves of many rows, over 64 by waves of few, from
// docs/measured/gpu/gpu_check.json. Taken are 4.5 times. So 256 rows of 4096
// outputs are four waves of few and not one of many, which fills half a device.
// Up to 64 rows have at most four waves of few in place of one of many.
// No device has run by this rule.
bool TakesManyRows(const LinearArgs& args, int num_processors) {
  return 9 * NumWaves(args, kManyRowsBlock, num_processors) <=
         2 * NumWaves(args, kFewRowsBlock, num_processors);
}

void Linear(const LinearArgs& args, Stream stream) {
  if (TakesManyRows(args, NumProcessors())) {
    return LinearOfManyRows(args, stream);
  }
  if (args.weight.element == Element::kBFloat16) {
    RunRows<Bf16>(args, stream);
  } else {
    RunRows<Half>(args, stream);
  }
}

}  // namespace outrider::kernels::cuda
