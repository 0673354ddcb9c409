// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/feed_forward.h"

namespace outrider {

void AddFeedForward(const ModelContext& model,
                    const FeedForwardWeights& weights, const at::Tensor& x,
                    at::Tensor& sum) {
  const Ops& ops = model.ops;
  const at::Tensor inner = ops.Linear(weights.up, x);
  switch (model.config.feed_forward) {
    case FeedForwardKind::kSiluGated:
      return ops.AddLinear(weights.down, ops.SiluMul(inner), sum);
    case FeedForwardKind::kGelu:
      return ops.AddLinear(weights.down, ops.GeluTanh(inner), sum);
  }
}

}  // namespace outrider
