// SPDX-License-Identifier: Apache-2.0
#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "core/kernels/cuda/emulation/runtime.h"
#endif

#include "core/kernels/cuda/runtime.h"

namespace outrider::kernels::cuda {
namespace {

// Of launches and copies too, whose errors the runtime keeps.
std::string MessageOf(cudaError_t error) {
  const cudaError_t kept = cudaGetLastError();
  if (error == cudaSuccess) error = kept;
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

}  // namespace

std::string DeviceName() {
  int device = 0;
  cudaDeviceProp properties;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    return "no GPU: " + MessageOf(cudaErrorNoDevice);
  }
  return properties.name;
}

void* AllocateMemory(size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) == cudaSuccess) return memory;
  cudaGetLastError();  // out of memory is no failure of what follows
  return nullptr;
}

void FreeMemory(void* memory) { cudaFree(memory); }

void CopyToDevice(void* to, const void* from, size_t bytes, Stream stream) {
  // The runtime copies what it has to send from pageable memory before it
  // returns.
  cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream);
}

void ZeroMemory(void* memory, size_t bytes, Stream stream) {
  cudaMemsetAsync(memory, 0, bytes, stream);
}

std::string CopyToHost(void* to, const void* from, size_t bytes,
                       Stream stream) {
  const cudaError_t error =
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  return error == cudaSuccess ? Synchronize(stream) : MessageOf(error);
}

std::string Synchronize(Stream stream) {
  return MessageOf(cudaStreamSynchronize(stream));
}

}  // namespace outrider::kernels::cuda
