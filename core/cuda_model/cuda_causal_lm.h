// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_CUDA_CAUSAL_LM_H_
#define OUTRIDER_CORE_CUDA_MODEL_CUDA_CAUSAL_LM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/cuda_model/cuda_transformer.h"
#include "core/model/causal_lm.h"
#include "core/model/model_config.h"

namespace outrider {

// A model on a GPU, by the kernels of core/kernels/cuda. `info` says what is
// known of it but for what the device decides: its name, numerics and
// kv_block_bytes.
//   UNIMPLEMENTED        sizes that the kernels do not take
//   RESOURCE_EXHAUSTED   no memory for what a pass needs
absl::StatusOr<std::unique_ptr<CausalLm>> MakeCudaCausalLm(
    std::shared_ptr<Gpu> gpu, ModelInfo info, const ModelConfig& config,
    CudaWeights weights, const CudaLimits& limits = {});

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_CUDA_CAUSAL_LM_H_
