// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/device.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/log.h"

namespace outrider {
namespace {

using c10::ScalarType;

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

ScalarType ChooseForCpu(const std::string& wider) {
  if (!wider.empty()) {
    OUTRIDER_LOG(kInfo) << "dtype float32, which holds the checkpoint's "
                        << wider << " without loss";
    return ScalarType::Float;
  }
  OUTRIDER_LOG(kInfo) << "dtype bfloat16, that of the checkpoint";
  return ScalarType::BFloat16;
}

absl::StatusOr<ScalarType> ChooseForGpu(const std::string& wider) {
  if (wider.empty()) return ScalarType::BFloat16;
  if (wider == "F16") return ScalarType::Half;
  return absl::InvalidArgumentError(absl::StrCat(
      "the checkpoint's ", wider,
      " would be rounded on a GPU, whose kernels have 16 bits: say so with "
      "--dtype bfloat16 or float16, or use the device cpu"));
}

}  // namespace

std::string Device::name() const {
  return is_cpu() ? "cpu" : absl::StrCat("cuda:", gpu);
}

absl::StatusOr<Device> ParseDevice(const std::string& name) {
  if (name == "cpu") return Device();
  if (name == "cuda") return Device{.gpu = 0};
  Device device;
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "cuda:") &&
      absl::SimpleAtoi(rest, &device.gpu) && device.gpu >= 0 &&
      device.gpu < 128) {
    return device;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", name, "\" is neither cpu, cuda nor cuda:N"));
}

absl::StatusOr<ScalarType> ChooseDtype(const std::string& name,
                                       const Checkpoint& checkpoint,
                                       const Device& device) {
  const std::string wider = WiderThanBfloat16(checkpoint);
  if (name == "auto") {
    if (device.is_cpu()) return ChooseForCpu(wider);
    return ChooseForGpu(wider);
  }
  if (name == "float32" && device.is_cpu()) return ScalarType::Float;
  if (name == "float16" && !device.is_cpu()) return ScalarType::Half;
  if (name == "float16" && device.is_cpu()) {
    return absl::InvalidArgumentError(
        "--dtype float16 is for GPUs, a CPU has none: give bfloat16, float32 "
        "or auto");
  }
  if (name != "bfloat16") {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype \"", name, "\" is neither auto, bfloat16 nor ",
        device.is_cpu() ? "float32" : "float16, and a GPU takes no other"));
  }
  if (!wider.empty()) {
    OUTRIDER_LOG(kWarning) << "dtype bfloat16 rounds the checkpoint's " << wider
                           << ": this is another model than the files hold";
  }
  return ScalarType::BFloat16;
}

std::string DtypeName(ScalarType dtype) {
  if (dtype == ScalarType::Float) return "float32";
  return dtype == ScalarType::Half ? "float16" : "bfloat16";
}

}  // namespace outrider
