// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_NORM_H_
#define OUTRIDER_CORE_TORCH_MODEL_NORM_H_

#include <ATen/core/Tensor.h>

#include "core/model/model_config.h"
#include "core/torch_model/ops.h"

namespace outrider {

// What every building block of a model needs to know; both outlive it.
struct ModelContext {
  const ModelConfig& config;
  const Ops& ops;
};

// The family's norm over the last dimension. x: [..., size] activations.
at::Tensor Normalize(const ModelContext& model, const NormWeights& weights,
                     const at::Tensor& x);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_NORM_H_
