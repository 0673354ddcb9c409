// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_FEED_FORWARD_H_
#define OUTRIDER_CORE_TORCH_MODEL_FEED_FORWARD_H_

#include <ATen/core/Tensor.h>

#include "core/torch_model/norm.h"
#include "core/torch_model/ops.h"

namespace outrider {

struct FeedForwardWeights {
  LinearWeights up = {};    // gate before up where the family has a gate
  LinearWeights down = {};  // [hidden_size, intermediate_size]
};

// Adds the result to `sum`. x and sum: [num_rows, hidden_size].
void AddFeedForward(const ModelContext& model,
                    const FeedForwardWeights& weights, const at::Tensor& x,
                    at::Tensor& sum);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_FEED_FORWARD_H_
