// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_GPU_FIXTURE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_GPU_FIXTURE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "core/kernels/cuda/gpu.h"
#include "gtest/gtest.h"

namespace outrider::kernels::cuda {

// The device whose kernels are linked, emulated or a GPU.
class GpuTest : public ::testing::Test {
 protected:
  GpuTest() : gpu_(OpenGpu(0, &error_)) {}

  std::string error_;
  const std::unique_ptr<Gpu> gpu_;
};

// Pinned host memory and device memory of the same size.
struct Buffers {
  Buffers(Gpu& device, size_t count)
      : gpu(device),
        size(count * sizeof(float)),
        host(static_cast<float*>(gpu.AllocatePinned(size))),
        memory(gpu.Allocate(size)) {}
  ~Buffers() {
    gpu.FreePinned(host);
    gpu.Free(memory);
  }

  Gpu& gpu;
  const size_t size;
  float* const host;
  void* const memory;
};

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_GPU_FIXTURE_H_
