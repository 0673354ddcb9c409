// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_RUNTIME_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_RUNTIME_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/kernels/cuda/element.h"
#include "core/kernels/cuda/emulation/block.h"

// The part of the CUDA runtime that runtime.cu uses, over the host's memory;
// included by that file alone. Everything has happened when a call returns.

// NOLINTBEGIN: the names are CUDA's.
enum cudaError_t {
  cudaSuccess,
  cudaErrorMemoryAllocation,
  cudaErrorNoDevice,
  cudaErrorLaunchFailure
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

struct cudaDeviceProp {
  const char* name;
};

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  properties->name = "emulated on the host; no GPU was used";
  return cudaSuccess;
}

// Exactly as large as asked for, so that the address sanitizer guards its end,
// and NaN to whoever reads it unwritten.
inline cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (posix_memalign(memory, 256, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xFF, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                   cudaMemcpyKind, CUstream_st*) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int byte, size_t bytes,
                                   CUstream_st*) {
  if (bytes > 0) std::memset(memory, byte, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(CUstream_st*) { return cudaSuccess; }

// A kernel's failure, once, as the message of the launch that had it.
inline std::string& EmulatedFailure() {
  static std::string failure;
  return failure;
}
inline cudaError_t cudaGetLastError() {
  std::string failure = outrider::kernels::cuda::emulation::TakeFailure();
  if (failure.empty()) return cudaSuccess;
  EmulatedFailure() = failure;
  return cudaErrorLaunchFailure;
}
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorLaunchFailure ? EmulatedFailure().c_str()
                                         : "out of memory";
}
// NOLINTEND

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_RUNTIME_H_
