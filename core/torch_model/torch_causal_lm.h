// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_TORCH_CAUSAL_LM_H_
#define OUTRIDER_CORE_TORCH_MODEL_TORCH_CAUSAL_LM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/causal_lm.h"
#include "core/model/checkpoint_options.h"

namespace outrider {

// A model whose files libtorch reads, and which it computes on a CPU; on a GPU
// core/cuda_model does. This header and its users are free of torch.
//   NOT_FOUND            no model directory, config.json or checkpoint
//   INVALID_ARGUMENT     damaged files, or options that name nothing
//   UNIMPLEMENTED        the model needs what we do not have: named
//   FAILED_PRECONDITION  no such GPU, no driver, or no library of kernels
//   RESOURCE_EXHAUSTED   no memory for the weights
//   UNAVAILABLE          the GPU failed
absl::StatusOr<std::unique_ptr<CausalLm>> LoadTorchCausalLm(
    const CheckpointOptions& options);
// The same, where a GPU is opened with another library of kernels.
absl::StatusOr<std::unique_ptr<CausalLm>> LoadTorchCausalLmBy(
    const std::string& cuda_library, const CheckpointOptions& options);

// Whether the directory's files fit each other and what is asked of them,
// without reading the weights or looking for a GPU: config.json, the
// checkpoint's names, shapes and dtypes, and for a GPU what its kernels take.
// Codes as above.
absl::Status CheckTorchCausalLm(const CheckpointOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_TORCH_CAUSAL_LM_H_
