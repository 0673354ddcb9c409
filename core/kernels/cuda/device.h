// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_DEVICE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_DEVICE_H_

// What a .cu file is written against: CUDA under nvcc; under a host's compiler
// the same names, run thread by thread (emulation/block.h). The rules that keep
// one source fit for both:
//
// * Of CUDA a kernel uses only what emulation/device.h names. Shared memory
//   comes from the two macros, a launch from Launch. PTX stays in wrappers
//   (mma.h), each with its emulation and a test of its layout.
// * All live threads of a block reach the same __syncthreads. A block returns
//   early as a whole. Warp operations name their lanes, and all of them come to
//   the same place in the source. Blocks are multiples of 32 threads.
// * No waiting for other blocks, no atomics on floats, no work for the block
//   that happens to be last: a second kernel merges. So the order of every sum
//   is fixed.
// * Where a row's bits matter, sums and products are __fmaf_rn, __fmul_rn and
//   __fadd_rn: nvcc may contract plain ones, differently in each instantiation.

#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/element.h"
#include "core/kernels/cuda/launch_limits.h"

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// An array in static shared memory: OUTRIDER_SHARED(float[32], sums).
#define OUTRIDER_SHARED(type, name) \
  __shared__ ::outrider::kernels::cuda::Plain<type> name
// All dynamic shared memory of the launch, aligned to 16 bytes.
#define OUTRIDER_DYNAMIC_SHARED(type, name)                                 \
  extern __shared__ __align__(16) unsigned char outrider_dynamic_shared_[]; \
  type* const name = reinterpret_cast<type*>(outrider_dynamic_shared_)

namespace outrider::kernels::cuda {

template <typename T>
using Plain = T;

template <typename... Parameters>
void AllowSharedMemory(void (*kernel)(Parameters...), size_t bytes) {
  if (bytes <= kSharedBytesWithoutAsking) return;
  cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(bytes));
}

// Errors stay with the runtime until somebody asks cudaGetLastError.
template <typename... Parameters, typename... Arguments>
void Launch(dim3 blocks, int threads, size_t shared_bytes, Stream stream,
            void (*kernel)(Parameters...), Arguments... arguments) {
  AllowSharedMemory(kernel, shared_bytes);
  kernel<<<blocks, dim3(threads), shared_bytes, stream>>>(
      Parameters(arguments)...);
}

}  // namespace outrider::kernels::cuda

#else
#include "core/kernels/cuda/emulation/device.h"
#endif

namespace outrider::kernels::cuda {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

inline int CeilDiv(int a, int b) { return (a + b - 1) / b; }

// The sum of the warp's 32 values, the same bits in every lane: addition
// commutes, and every lane adds the same pairs.
__device__ inline float WarpSum(float x) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    x = __fadd_rn(x, __shfl_xor_sync(kAllLanes, x, distance));
  }
  return x;
}

// The sum over all threads of a block, known to all. `scratch`: a float in
// shared memory for each warp, free again after the next barrier.
__device__ inline float BlockSum(float x, float* scratch) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  x = WarpSum(x);
  if (threadIdx.x % kWarpSize == 0) scratch[warp] = x;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < static_cast<int>(blockDim.x) / kWarpSize; ++i) {
    sum = __fadd_rn(sum, scratch[i]);
  }
  return sum;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_DEVICE_H_
