// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_LINEAR_PARTS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_LINEAR_PARTS_H_

#include "core/kernels/cuda/async_copy.h"
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/linear.h"
#include "core/kernels/cuda/mma.h"

// What both kernels of a matrix product share: where weights and inputs lie as
// operands, the order of a sum, and what becomes of it.
namespace outrider::kernels::cuda {

// k is cut into slices: chunks of kTileIn inputs, the slice's own number first
// and then every kSlices-th. Each is summed with k ascending, and the slices
// are added in their order.
constexpr int kSlices = 8;
constexpr int kTileRows = 8;            // tokens of an mma
constexpr int kOfTile = 2 * kWarpSize;  // 16 bytes each: a chunk's two
                                        // operands A of a tile of outputs

// What a block of threads has: in linear.cu where there are most rows, and in
// linear_many_rows.cu.
struct LinearBlock {
  int rows;
  int outputs;
};
constexpr LinearBlock kFewRowsBlock = {64, 32}, kManyRowsBlock = {128, 128};

struct LinearShape {
  int num_chunks;
  int num_tiles;  // of outputs
};

__device__ inline LinearShape ShapeOf(const LinearArgs& args) {
  return {(args.weight.in + kTileIn - 1) / kTileIn,
          (args.weight.out + kTileOut - 1) / kTileOut};
}

// Asks for the lane's share of a chunk of weights.
__device__ inline void AskForWeights(const LinearArgs& args,
                                     const LinearShape& shape, int tile,
                                     int chunk, uint4* to) {
  const uint4* from =
      static_cast<const uint4*>(args.weight.tiles) +
      (static_cast<size_t>(tile) * shape.num_chunks + chunk) * kOfTile +
      threadIdx.x % kWarpSize;
  CopyAsync<Reuse::kNone>(to, from);
  CopyAsync<Reuse::kNone>(to + kWarpSize, from + kWarpSize);
}

// Asks for the lane's share of a chunk of a tile of tokens: eight inputs of one
// token, its part of both operands B. What is beyond the last token is not
// stored: it may be anything, so that one is read again.
__device__ inline void AskForInputs(const LinearArgs& args, int first_row,
                                    int chunk, uint4* to) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int row = min(first_row + lane / 4, args.num_rows - 1);
  const int eights = args.weight.in / 8;  // of a token
  const int eight = chunk * (kTileIn / 8) + lane % 4;
  const unsigned before = static_cast<unsigned>(row) * eights;
  CopyAsync<Reuse::kByOtherBlocks>(
      to, static_cast<const uint4*>(args.x) + before + eight, eight < eights);
}

__device__ inline FragmentA OperandOf(uint4 words) {
  return {{words.x, words.y, words.z, words.w}};
}

// The lane's share of a chunk, in registers.
template <int kOutTiles, int kRowTiles>
struct Operands {
  FragmentA weights[kOutTiles][2];
  uint4 inputs[kRowTiles];  // both operands B of a tile of tokens
};

// Part `r` of the lane's share: kRowTiles parts are all of it.
template <int kOutTiles, int kRowTiles>
__device__ void LoadPart(const uint4* weights, const uint4* inputs, int r,
                         Operands<kOutTiles, kRowTiles>& operands) {
  const int tile = r * kWarpSize;
  operands.inputs[r] = LoadInOrder(inputs + tile);
#pragma unroll
  for (int i = 0; i < 2 * kOutTiles; ++i) {
    if (i % kRowTiles != r) continue;
    const int operand = i * kWarpSize;
    operands.weights[i / 2][i % 2] = OperandOf(LoadInOrder(weights + operand));
  }
}

// sums[.][r] += the chunk's products with tile r of tokens.
template <typename T, int kOutTiles, int kRowTiles>
__device__ void MultiplyPart(const Operands<kOutTiles, kRowTiles>& operands,
                             int r, FragmentD (&sums)[kOutTiles][kRowTiles]) {
  const uint4 x = operands.inputs[r];
#pragma unroll
  for (int o = 0; o < kOutTiles; ++o) {
    Mma<T>(sums[o][r], operands.weights[o][0], {{x.x, x.y}});
    Mma<T>(sums[o][r], operands.weights[o][1], {{x.z, x.w}});
  }
}

__device__ inline float4 Add(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y),
                     __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w));
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_LINEAR_PARTS_H_
