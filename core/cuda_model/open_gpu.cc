// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/open_gpu.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

std::string BesideTheProgram(const std::string& library) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "lib" / library).string();
}

// What the loader said last.
std::string LoadError() {
  const char* reason = dlerror();
  return reason == nullptr ? "no reason given" : reason;
}

absl::StatusOr<void*> Load(const std::string& library) {
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL;
  void* handle = dlopen(library.c_str(), kHow);
  if (handle == nullptr && library.find('/') == std::string::npos) {
    handle = dlopen(BesideTheProgram(library).c_str(), kHow);
  }
  if (handle != nullptr) return handle;
  return absl::FailedPreconditionError(
      absl::StrCat("device cuda: the kernels cannot be loaded (", LoadError(),
                   "); build with the CUDA Toolkit installed, and keep ",
                   library, " in lib beside the program's folder"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<kernels::cuda::Gpu>> OpenGpu(
    int index, const std::string& library) {
  const absl::StatusOr<void*> handle = Load(library);
  if (!handle.ok()) return handle.status();
  auto* const open = reinterpret_cast<kernels::cuda::OpenGpuFunction*>(
      dlsym(*handle, kernels::cuda::kOpenGpuSymbol));
  if (open == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("device cuda: ", library, " is of another version (",
                     LoadError(), ")"));
  }
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
