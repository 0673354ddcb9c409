// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/kernels/dispatch.h"

namespace outrider {
namespace {

// Loading it registers the backend; it stays for the life of the process. It
// must come before the first question to CUDAHooks, whose answer is kept.
absl::Status LoadCudaLibrary() {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) {
    return absl::OkStatus();
  }
  const char* reason = dlerror();
  return absl::FailedPreconditionError(absl::StrCat(
      "device cuda: libtorch_cuda.so cannot be loaded (",
      reason == nullptr ? "no reason given" : reason,
      "); install torch with its CUDA dependencies, or use the device cpu"));
}

absl::StatusOr<c10::Device> OpenCuda(int index) {
  OUTRIDER_RETURN_IF_ERROR(LoadCudaLibrary());
  if (!at::hasCUDA()) {
    return absl::FailedPreconditionError(
        "device cuda: no usable NVIDIA driver or no GPU on this machine");
  }
  const int num_devices = at::detail::getCUDAHooks().deviceCount();
  if (index >= num_devices) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device cuda:", index, ": there are ", num_devices, " GPUs"));
  }
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  return c10::Device(c10::DeviceType::CUDA,
                     static_cast<c10::DeviceIndex>(index));
}

// Of the tensors that hold most of the model: any matrix.
bool HasSixteenBits(const Checkpoint& checkpoint) {
  for (const auto& [name, entry] : checkpoint.tensors()) {
    if (entry.shape.size() == 2 && entry.dtype == "F32") return false;
  }
  return true;
}

bool CpuComputesBfloat16() {
  return kernels::BestLevel() >= kernels::Level::kAvx512Bf16;
}

}  // namespace

absl::StatusOr<c10::Device> OpenDevice(const std::string& name) {
  if (name == "cpu") return c10::Device(c10::DeviceType::CPU);
  int index = 0;
  absl::string_view rest = name;
  const bool is_cuda = absl::ConsumePrefix(&rest, "cuda");
  if (is_cuda && rest.empty()) return OpenCuda(0);
  if (is_cuda && absl::ConsumePrefix(&rest, ":") &&
      absl::SimpleAtoi(rest, &index) && index >= 0 && index < 128) {
    return OpenCuda(index);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", name, "\" is neither cpu, cuda nor cuda:N"));
}

absl::StatusOr<c10::ScalarType> ChooseDtype(const std::string& name,
                                            const Checkpoint& checkpoint,
                                            c10::Device device) {
  if (name == "float32") return c10::ScalarType::Float;
  if (name == "bfloat16") return c10::ScalarType::BFloat16;
  if (name != "auto") {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype \"", name, "\" is neither auto, float32 nor bfloat16"));
  }
  const bool is_fast = device.is_cuda() || CpuComputesBfloat16();
  return is_fast && HasSixteenBits(checkpoint) ? c10::ScalarType::BFloat16
                                               : c10::ScalarType::Float;
}

}  // namespace outrider
