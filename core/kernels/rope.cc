// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/rope.h"

#include "core/base/check.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {

void ApplyRope(const RopeArgs& args, Level level) {
  OUTRIDER_CHECK(args.head_dim % 2 == 0) << "head_dim " << args.head_dim;
  cpu::TableFor(level).apply_rope(args);
}

}  // namespace outrider::kernels
