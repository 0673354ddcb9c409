// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_NORM_H_
#define OUTRIDER_CORE_KERNELS_NORM_H_

#include "core/kernels/execution.h"

namespace outrider::kernels {

struct NormArgs {
  const float* x = nullptr;       // [num_rows, size]
  const float* weight = nullptr;  // [size]
  const float* bias = nullptr;    // [size], or null; LayerNorm only
  int num_rows = 0;
  int size = 0;
  float epsilon = 0.0f;
  float* y = nullptr;  // [num_rows, size]; may be x
};

// y = x / sqrt(mean(x^2) + epsilon) * weight.
void RmsNorm(const NormArgs& args, const Execution& execution);

// y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias.
void LayerNorm(const NormArgs& args, const Execution& execution);

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_NORM_H_
