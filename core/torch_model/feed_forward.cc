// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/feed_forward.h"

namespace outrider {

at::Tensor FeedForward(const ModelConfig& config,
                       const FeedForwardWeights& weights, const at::Tensor& x) {
  const at::Tensor inner = Linear(weights.up, x);
  switch (config.feed_forward) {
    case FeedForwardKind::kSiluGated:
      return Linear(weights.down, SiluMul(inner));
    case FeedForwardKind::kGelu:
      return Linear(weights.down, GeluTanh(inner));
  }
  return x;
}

}  // namespace outrider
