// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_ROPE_H_
#define OUTRIDER_CORE_KERNELS_ROPE_H_

#include "core/kernels/execution.h"

namespace outrider::kernels {

struct RopeArgs {
  float* x = nullptr;  // [num_rows, num_heads, head_dim], changed in place
  int row_stride = 0;  // elements from one row to the next
  int num_rows = 0;
  int num_heads = 0;
  int head_dim = 0;            // even
  int first_position = 0;      // of row 0; row i stands at first_position + i
  const float* cos = nullptr;  // [context_length, head_dim / 2]
  const float* sin = nullptr;  // [context_length, head_dim / 2]
};

// Rotary embedding in the convention of Hugging Face's Llama ("rotate half"):
// element d turns with element d + head_dim / 2.
void ApplyRope(const RopeArgs& args, const Execution& execution);

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_ROPE_H_
