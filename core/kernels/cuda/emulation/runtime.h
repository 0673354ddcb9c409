// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_RUNTIME_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_RUNTIME_H_

#include <cstddef>
#include <cstring>
#include <string>

#include "core/kernels/cuda/element.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/emulation/runtime_order.h"
#include "core/kernels/cuda/emulation/stream.h"

// What runtime.cu uses of the CUDA runtime, by stream.h; for that file alone.

// NOLINTBEGIN: the names are CUDA's.
using cudaMemcpyKind = int;
constexpr int cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2,
              cudaMemcpyDeviceToDevice = 3;
struct cudaDeviceProp {
  const char* name;
  int major, minor;
};

inline cudaError_t cudaGetDeviceCount(int* count) {
  return *count = emulated::NumDevices(), cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* at) {
  return *at = emulated::UsedDevice(), cudaSuccess;
}
inline cudaError_t cudaSetDevice(int at) {
  return emulated::UseDevice(at) ? cudaSuccess : cudaErrorNoDevice;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int at) {
  *properties = {at == 0 ? "emulated on the host; no GPU was used"
                         : "another one, emulated on the host",
                 0, 0};
  return cudaSuccess;
}
constexpr int cudaDevAttrMultiProcessorCount = 16;
inline cudaError_t cudaDeviceGetAttribute(int* value, int /*attribute*/,
                                          int /*device*/) {
  return *value = emulated::NumProcessors(), cudaSuccess;
}
inline cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = emulated::NewMemory(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  return emulated::DeleteMemory(memory), cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  return *available = *total = emulated::AvailableMemory(), cudaSuccess;
}
inline cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = emulated::NewPinned(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* memory) {
  return emulated::DeletePinned(memory), cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                   int /*kind*/, CUstream_st* stream) {
  return emulated::Copy(to, from, bytes, stream), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int byte, size_t bytes,
                                   CUstream_st* stream) {
  emulated::Submit(stream, [=] { std::memset(memory, byte, bytes); });
  return cudaSuccess;
}
// A kernel's failure, told once, to whatever thread asks first.
inline std::string& EmulatedFailure() {
  thread_local std::string failure;
  return failure;
}
inline cudaError_t cudaGetLastError() {
  std::string failure = emulated::TakeFailure();
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
