// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/norm.h"

#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {

void RmsNorm(const NormArgs& args, Level level) {
  cpu::TableFor(level).rms_norm(args);
}

void LayerNorm(const NormArgs& args, Level level) {
  cpu::TableFor(level).layer_norm(args);
}

}  // namespace outrider::kernels
