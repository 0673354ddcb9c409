// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/activation.h"

#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {

void SiluMul(const SiluMulArgs& args, Level level) {
  cpu::TableFor(level).silu_mul(args);
}

void GeluNew(float* x, size_t count, Level level) {
  cpu::TableFor(level).gelu_new(x, count);
}

void Exp(const float* x, float* y, size_t count, Level level) {
  cpu::TableFor(level).exp(x, y, count);
}

}  // namespace outrider::kernels
