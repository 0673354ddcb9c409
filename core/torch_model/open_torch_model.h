// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_OPEN_TORCH_MODEL_H_
#define OUTRIDER_CORE_TORCH_MODEL_OPEN_TORCH_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/causal_lm.h"
#include "core/model/checkpoint_options.h"

namespace outrider {

// The library with libtorch, which takes a quarter of a second of CPU and 110
// MB to open: a program opens it once it has weights to read, and not to print
// its help, to refuse a flag, or to serve a timing model.
inline constexpr char kTorchLibrary[] = "liboutrider_torch_model.so";

// LoadTorchCausalLm and CheckTorchCausalLm of that library (torch_causal_lm.h
// has their codes); FAILED_PRECONDITION says what is missing besides: the
// library, or libtorch.
absl::StatusOr<std::unique_ptr<CausalLm>> OpenTorchCausalLm(
    const CheckpointOptions& options);
absl::Status CheckTorchModel(const CheckpointOptions& options);

// The same of another library.
absl::StatusOr<std::unique_ptr<CausalLm>> OpenTorchCausalLmBy(
    const std::string& library, const CheckpointOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_OPEN_TORCH_MODEL_H_
