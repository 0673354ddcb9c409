// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/feed_forward.h"

namespace outrider {

at::Tensor FeedForward(const ModelContext& model,
                       const FeedForwardWeights& weights, const at::Tensor& x) {
  const Ops& ops = model.ops;
  const at::Tensor inner = ops.Linear(weights.up, x);
  switch (model.config.feed_forward) {
    case FeedForwardKind::kSiluGated:
      return ops.Linear(weights.down, ops.SiluMul(inner));
    case FeedForwardKind::kGelu:
      return ops.Linear(weights.down, ops.GeluTanh(inner));
  }
  return x;
}

}  // namespace outrider
