// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_ROPE_H_
#define OUTRIDER_CORE_TORCH_MODEL_ROPE_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/types/span.h"
#include "core/model/model_config.h"
#include "core/torch_model/ops.h"

namespace outrider {

// How fast each pair of a head's elements turns, in radians a position:
// [head_dim / 2]. Computed in float32, as the reference does: the difference
// to float64 grows with the position.
std::vector<float> RotaryFrequencies(const ModelConfig& config);

RotaryAngles AnglesAt(absl::Span<const float> frequencies,
                      absl::Span<const int> positions, at::Device device);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_ROPE_H_
