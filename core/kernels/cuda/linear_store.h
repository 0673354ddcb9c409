// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_LINEAR_STORE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_LINEAR_STORE_H_

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/linear.h"
#include "core/kernels/cuda/numbers.h"

// What becomes of a matrix product's sums: the bias, the epilogue, the store.
namespace outrider::kernels::cuda {

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

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_LINEAR_STORE_H_
