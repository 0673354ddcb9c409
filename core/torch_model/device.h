// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_DEVICE_H_
#define OUTRIDER_CORE_TORCH_MODEL_DEVICE_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <string>

#include "absl/status/statusor.h"
#include "core/model/safetensors.h"

namespace outrider {

// "cpu", "cuda" or "cuda:N", ready for use: for CUDA, libtorch's CUDA part is
// loaded here, at run time. FAILED_PRECONDITION says what is missing.
absl::StatusOr<c10::Device> OpenDevice(const std::string& name);

// "float32", "bfloat16", or "auto": what TorchCausalLmOptions says.
absl::StatusOr<c10::ScalarType> ChooseDtype(const std::string& name,
                                            const Checkpoint& checkpoint,
                                            c10::Device device);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_DEVICE_H_
