// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/norm.h"

namespace outrider {

at::Tensor Normalize(const ModelConfig& config, const NormWeights& weights,
                     const at::Tensor& x) {
  switch (config.norm) {
    case NormKind::kRms:
      return RmsNorm(weights, x, config.norm_epsilon);
    case NormKind::kLayer:
      return LayerNorm(weights, x, config.norm_epsilon);
  }
  return x;
}

}  // namespace outrider
