// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_DEVICE_H_
#define OUTRIDER_CORE_TORCH_MODEL_DEVICE_H_

#include <c10/core/ScalarType.h>

#include <string>

#include "absl/status/statusor.h"
#include "core/model/safetensors.h"

namespace outrider {

// What a model runs on.
struct Device {
  static constexpr int kCpu = -1;
  int gpu = kCpu;  // its number

  bool is_cpu() const { return gpu == kCpu; }
  std::string name() const;  // "cpu", "cuda:0"
};

// "cpu", "cuda" or "cuda:N"; whether there is such a GPU is another question.
absl::StatusOr<Device> ParseDevice(const std::string& name);

// "float32", "bfloat16", "float16", or "auto": what CheckpointOptions says.
absl::StatusOr<c10::ScalarType> ChooseDtype(const std::string& name,
                                            const Checkpoint& checkpoint,
                                            const Device& device);

// The name that ModelInfo::dtype has.
std::string DtypeName(c10::ScalarType dtype);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_DEVICE_H_
