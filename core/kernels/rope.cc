// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/rope.h"

#include "core/base/check.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {

void ApplyRope(const RopeArgs& args, const Execution& execution) {
  OUTRIDER_CHECK(args.head_dim % 2 == 0) << "head_dim " << args.head_dim;
  const auto apply_rope = cpu::TableFor(execution.level()).apply_rope;
  const size_t row_size = static_cast<size_t>(args.num_heads) * args.head_dim;
  execution.ForRows(args.num_rows, row_size, [&](int begin, int end) {
    RopeArgs rows = args;
    rows.x += static_cast<size_t>(args.row_stride) * begin;
    rows.first_position += begin;
    rows.num_rows = end - begin;
    apply_rope(rows);
  });
}

}  // namespace outrider::kernels
