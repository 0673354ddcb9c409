// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/feed_forward.h"

namespace outrider {

void AddFeedForward(const ModelContext& model,
                    const FeedForwardWeights& weights, const at::Tensor& input,
                    at::Tensor& x) {
  const Ops& ops = model.ops;
  at::Tensor inner = ops.Linear(weights.up, input);
  switch (model.config.feed_forward) {
    case FeedForwardKind::kSiluGated:
      inner = ops.SiluMul(inner);
      break;
    case FeedForwardKind::kGelu:
      ops.GeluTanh(inner);
      break;
  }
  ops.AddLinear(weights.down, inner, x);
}

}  // namespace outrider
