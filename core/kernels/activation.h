// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_ACTIVATION_H_
#define OUTRIDER_CORE_KERNELS_ACTIVATION_H_

#include <cstddef>

#include "core/kernels/execution.h"

namespace outrider::kernels {

struct SiluMulArgs {
  const float* gate_up = nullptr;  // [num_rows, 2 * size]: gate, then up
  int num_rows = 0;
  int size = 0;
  float* y = nullptr;  // [num_rows, size]; not gate_up
};

// y = gate * sigmoid(gate) * up.
void SiluMul(const SiluMulArgs& args, const Execution& execution);

// x = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), GPT-2's own
// approximation of GELU, in place on `count` elements.
void GeluNew(float* x, size_t count, const Execution& execution);

// y = e^x on `count` elements, within 2 units in the last place over the whole
// range, 0 and infinity included; NaN stays NaN. `y` may be `x`.
void Exp(const float* x, float* y, size_t count, Level level);

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_ACTIVATION_H_
