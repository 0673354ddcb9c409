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
  const int eight = chunk * (kTileIn / 8) + lane % 4;
  CopyAsync<Reuse::kByOtherBlocks>(
      to,
      static_cast<const uint4*>(args.x) +
          static_cast<unsigned>(row) * (args.weight.in / 8) + eight,
      eight < args.weight.in / 8);
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
  operands.inputs[r] = LoadInOrder(inputs + r * kWarpSize);
#pragma unroll
  for (int i = r; i < 2 * kOutTiles; i += kRowTiles) {
    operands.weights[i / 2][i % 2] =
        OperandOf(LoadInOrder(weights + i * kWarpSize));
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

constexpr float kGeluScale = 0.7978845608028654f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

__device__ inline float Silu(float x) {
  return __fdiv_rn(x, __fadd_rn(1.0f, expf(-x)));
}

__device__ inline float Gelu(float x) {
  const float cubic = __fmul_rn(kGeluCubic, __fmul_rn(x, __fmul_rn(x, x)));
  const float inner = __fmul_rn(kGeluScale, __fadd_rn(x, cubic));
  return __fmul_rn(__fmul_rn(0.5f, x), __fadd_rn(1.0f, tanhf(inner)));
}

template <typename T>
__device__ void StoreSum(const LinearArgs& args, int row, int output,
                         float sum) {
  if (row >= args.num_rows || output >= args.weight.out) return;
  if (args.bias != nullptr) sum = __fadd_rn(sum, args.bias[output]);
  const size_t place = static_cast<size_t>(row) * args.weight.out + output;
  switch (args.epilogue) {
    case Epilogue::kStore:
      static_cast<float*>(args.y)[place] = sum;
      break;
    case Epilogue::kAdd: {
      float* y = static_cast<float*>(args.y) + place;
      *y = __fadd_rn(*y, sum);
      break;
    }
    case Epilogue::kGelu:
      static_cast<T*>(args.y)[place] = FromFloat<T>(Gelu(sum));
      break;
    case Epilogue::kSiluMul:
      break;
  }
}

template <typename T>
__device__ void StoreSiluMul(const LinearArgs& args, int row, int output,
                             float gate, float up) {
  const int size = args.weight.out / 2;
  if (row >= args.num_rows || output >= size) return;
  if (args.bias != nullptr) {
    gate = __fadd_rn(gate, args.bias[output]);
    up = __fadd_rn(up, args.bias[size + output]);
  }
  static_cast<T*>(args.y)[static_cast<size_t>(row) * size + output] =
      FromFloat<T>(__fmul_rn(Silu(gate), up));
}

// Sums of one lane: outputs g and g + 8 of a tile for tokens `row`, `row` + 1.
template <typename T>
__device__ void Store(const LinearArgs& args, int tile, int row, int g,
                      float4 sum) {
  if (args.epilogue == Epilogue::kSiluMul) {
    StoreSiluMul<T>(args, row, tile * 8 + g, sum.x, sum.z);
    StoreSiluMul<T>(args, row + 1, tile * 8 + g, sum.y, sum.w);
    return;
  }
  const int output = tile * kTileOut + g;
  StoreSum<T>(args, row, output, sum.x);
  StoreSum<T>(args, row + 1, output, sum.y);
  StoreSum<T>(args, row, output + 8, sum.z);
  StoreSum<T>(args, row + 1, output + 8, sum.w);
}

// Whether the blocks of LinearOfManyRows, which are large, keep a device busy.
bool FillsDevice(const LinearArgs& args);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_LINEAR_PARTS_H_
