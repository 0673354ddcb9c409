// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/norm.h"

#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {
namespace {

void NormRows(const NormArgs& args, const Execution& execution,
              void (*norm)(const NormArgs& args)) {
  const size_t size = static_cast<size_t>(args.size);
  execution.ForRows(args.num_rows, size, [&](int begin, int end) {
    NormArgs rows = args;
    rows.x += size * begin;
    rows.y += size * begin;
    rows.num_rows = end - begin;
    norm(rows);
  });
}

}  // namespace

void RmsNorm(const NormArgs& args, const Execution& execution) {
  NormRows(args, execution, cpu::TableFor(execution.level()).rms_norm);
}

void LayerNorm(const NormArgs& args, const Execution& execution) {
  NormRows(args, execution, cpu::TableFor(execution.level()).layer_norm);
}

}  // namespace outrider::kernels
