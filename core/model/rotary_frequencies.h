// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_ROTARY_FREQUENCIES_H_
#define OUTRIDER_CORE_MODEL_ROTARY_FREQUENCIES_H_

#include <vector>

#include "core/model/model_config.h"

namespace outrider {

// How fast each pair of a head's elements turns, in radians a position:
// [head_dim / 2]. Computed in float32, as the reference does: the difference
// to float64 grows with the position. Their cosines and sines are to be
// multiplied by config.rope_scaling.magnitude.
std::vector<float> RotaryFrequencies(const ModelConfig& config);

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_ROTARY_FREQUENCIES_H_
