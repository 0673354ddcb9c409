// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/norm.h"

namespace outrider {

at::Tensor Normalize(const ModelContext& model, const NormWeights& weights,
                     const at::Tensor& x) {
  switch (model.config.norm) {
    case NormKind::kRms:
      return model.ops.RmsNorm(weights, x, model.config.norm_epsilon);
    case NormKind::kLayer:
      return model.ops.LayerNorm(weights, x, model.config.norm_epsilon);
  }
  return x;
}

}  // namespace outrider
