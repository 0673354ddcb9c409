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
#include "core/base/log.h"
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

// The first dtype that bfloat16 would round, of the tensors that hold most of
// the model: the matrices. Empty where there is none. A float16 has three more
// bits of precision than a bfloat16.
std::string WiderThanBfloat16(const Checkpoint& checkpoint) {
  for (const auto& [name, entry] : checkpoint.tensors()) {
    const bool is_wider = entry.dtype == "F32" || entry.dtype == "F16";
    if (entry.shape.size() == 2 && is_wider) return entry.dtype;
  }
  return "";
}

bool ComputesBfloat16(c10::Device device) {
  return device.is_cuda() ||
         kernels::BestLevel() >= kernels::Level::kAvx512Bf16;
}

c10::ScalarType ChooseAuto(const std::string& wider, c10::Device device) {
  if (!wider.empty()) {
    OUTRIDER_LOG(kInfo) << "dtype float32, which holds the checkpoint's "
                        << wider << " without loss";
    return c10::ScalarType::Float;
  }
  if (!ComputesBfloat16(device)) {
    OUTRIDER_LOG(kInfo) << "dtype float32, as " << device.str()
                        << " does not compute with the checkpoint's BF16";
    return c10::ScalarType::Float;
  }
  OUTRIDER_LOG(kInfo) << "dtype bfloat16, that of the checkpoint";
  return c10::ScalarType::BFloat16;
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
  const std::string wider = WiderThanBfloat16(checkpoint);
  if (name == "auto") return ChooseAuto(wider, device);
  if (name == "float32") return c10::ScalarType::Float;
  if (name != "bfloat16") {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype \"", name, "\" is neither auto, float32 nor bfloat16"));
  }
  if (!wider.empty()) {
    OUTRIDER_LOG(kWarning) << "dtype bfloat16 rounds the checkpoint's " << wider
                           << ": this is another model than the files hold";
  }
  return c10::ScalarType::BFloat16;
}

}  // namespace outrider
