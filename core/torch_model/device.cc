// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/device.h"

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/log.h"

namespace outrider {
namespace {

using c10::ScalarType;

// The dtypes of the tensors that hold most of the model: the matrices.
using Dtypes = std::set<std::string>;

Dtypes DtypesOfMatrices(const Checkpoint& checkpoint) {
  Dtypes dtypes;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    if (entry.shape.size() == 2) dtypes.insert(entry.dtype);
  }
  return dtypes;
}

ScalarType ChooseForCpu(const Dtypes& dtypes) {
  if (dtypes == Dtypes{"BF16"}) {
    OUTRIDER_LOG(kInfo) << "dtype bfloat16, that of the checkpoint";
    return ScalarType::BFloat16;
  }
  OUTRIDER_LOG(kInfo) << "dtype float32, which holds the checkpoint's "
                      << absl::StrJoin(dtypes, " and ") << " without loss";
  return ScalarType::Float;
}

absl::StatusOr<ScalarType> ChooseForGpu(const Dtypes& dtypes) {
  if (dtypes == Dtypes{"BF16"}) return ScalarType::BFloat16;
  if (dtypes == Dtypes{"F16"}) return ScalarType::Half;
  return absl::InvalidArgumentError(absl::StrCat(
      "the checkpoint's ", absl::StrJoin(dtypes, " and "),
      " would be rounded on a GPU, whose kernels have one dtype of 16 bits: "
      "say so with --dtype bfloat16 or float16, or use the device cpu"));
}

// A bfloat16 has fewer bits than a float16, which has the smaller range.
void WarnOfLoss(const std::string& name, const std::string& own,
                Dtypes dtypes) {
  dtypes.erase(own);
  if (dtypes.empty()) return;
  OUTRIDER_LOG(kWarning) << "dtype " << name
                         << " does not hold all numbers of the checkpoint's "
                         << absl::StrJoin(dtypes, " and ")
                         << ": this is another model than the files hold";
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
  const Dtypes dtypes = DtypesOfMatrices(checkpoint);
  if (name == "auto") {
    if (device.is_cpu()) return ChooseForCpu(dtypes);
    return ChooseForGpu(dtypes);
  }
  if (name == "float32" && device.is_cpu()) return ScalarType::Float;
  if (name == "float16" && device.is_cpu()) {
    return absl::InvalidArgumentError(
        "--dtype float16 is for GPUs, a CPU has none: give bfloat16, float32 "
        "or auto");
  }
  if (name == "float16") {
    WarnOfLoss(name, "F16", dtypes);
    return ScalarType::Half;
  }
  if (name != "bfloat16") {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype \"", name, "\" is neither auto, bfloat16 nor ",
        device.is_cpu() ? "float32" : "float16, and a GPU takes no other"));
  }
  WarnOfLoss(name, "BF16", dtypes);
  return ScalarType::BFloat16;
}

std::string DtypeName(ScalarType dtype) {
  if (dtype == ScalarType::Float) return "float32";
  return dtype == ScalarType::Half ? "float16" : "bfloat16";
}

}  // namespace outrider
