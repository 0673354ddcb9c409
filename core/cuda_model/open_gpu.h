// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_OPEN_GPU_H_
#define OUTRIDER_CORE_CUDA_MODEL_OPEN_GPU_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/kernels/cuda/gpu.h"

namespace outrider {

// The library with the kernels and the CUDA runtime, which no program needs to
// start.
inline constexpr char kCudaLibrary[] = "liboutrider_cuda_kernels.so";

// GPU number `index` of this machine. A library without a path is looked for
// where the system looks, then in ../lib beside the program; it stays loaded.
// FAILED_PRECONDITION says what is missing: the library, a driver, the GPU.
absl::StatusOr<std::shared_ptr<kernels::cuda::Gpu>> OpenGpu(
    int index, const std::string& library = kCudaLibrary);

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_OPEN_GPU_H_
