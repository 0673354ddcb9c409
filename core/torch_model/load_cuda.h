// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_LOAD_CUDA_H_
#define OUTRIDER_CORE_TORCH_MODEL_LOAD_CUDA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/cuda_model/cuda_transformer.h"
#include "core/model/causal_lm.h"
#include "core/model/model_config.h"
#include "core/torch_model/weights.h"

namespace outrider {

// Brings weights of 16 bits, which are in the host's memory, to a GPU, and
// gives them back there matrix by matrix. What comes out knows no torch.
absl::StatusOr<std::unique_ptr<CausalLm>> MoveToGpu(std::shared_ptr<Gpu> gpu,
                                                    ModelInfo info,
                                                    const ModelConfig& config,
                                                    ModelWeights weights);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_LOAD_CUDA_H_
