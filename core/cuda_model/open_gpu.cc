// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/open_gpu.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/open_library.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

absl::StatusOr<void*> FindFunction(const std::string& library) {
  absl::StatusOr<void*> found = OpenLibrary(library, OUTRIDER_OPEN_GPU_SYMBOL,
                                            LookFirst::kWhereSystemDoes);
  if (found.ok()) return found;
  if (!absl::IsNotFound(found.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("device cuda: ", found.status().message()));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "device cuda: the kernels cannot be loaded (", found.status().message(),
      "); build with the CUDA Toolkit installed, and keep ", library,
      " in lib beside the program's folder"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<kernels::cuda::Gpu>> OpenGpu(
    int index, const std::string& library) {
  OUTRIDER_ASSIGN_OR_RETURN(void* const found, FindFunction(library));
  auto* const open = reinterpret_cast<kernels::cuda::OpenGpuFunction*>(found);
  std::string error;
  std::shared_ptr<kernels::cuda::Gpu> gpu(open(index, &error));
  if (gpu != nullptr) return gpu;
  return absl::FailedPreconditionError(absl::StrCat(
      "device cuda:", index,
      ": no usable NVIDIA driver (libcuda.so.1, where the system or "
      "LD_LIBRARY_PATH finds it), or no such GPU on this machine: ",
      error));
}

}  // namespace outrider
