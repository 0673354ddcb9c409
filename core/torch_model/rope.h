// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_ROPE_H_
#define OUTRIDER_CORE_TORCH_MODEL_ROPE_H_

#include <ATen/core/Tensor.h>

#include "absl/types/span.h"
#include "core/torch_model/ops.h"

namespace outrider {

// Cosines and sines, multiplied by `magnitude` (RopeScaling).
RotaryAngles AnglesAt(absl::Span<const float> frequencies,
                      absl::Span<const int> positions, float magnitude = 1);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_ROPE_H_
