// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/activation.h"

#include <algorithm>

#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {

void SiluMul(const SiluMulArgs& args, const Execution& execution) {
  const auto silu_mul = cpu::TableFor(execution.level()).silu_mul;
  const size_t size = static_cast<size_t>(args.size);
  execution.ForRows(args.num_rows, 2 * size, [&](int begin, int end) {
    silu_mul({.gate_up = args.gate_up + 2 * size * begin,
              .num_rows = end - begin,
              .size = args.size,
              .y = args.y + size * begin});
  });
}

void GeluNew(float* x, size_t count, const Execution& execution) {
  const auto gelu_new = cpu::TableFor(execution.level()).gelu_new;
  constexpr size_t kPiece = 4096;
  const int num_pieces = static_cast<int>((count + kPiece - 1) / kPiece);
  execution.ForRows(num_pieces, kPiece, [&](int begin, int end) {
    const size_t first = kPiece * begin;
    gelu_new(x + first, std::min(kPiece * end, count) - first);
  });
}

void Exp(const float* x, float* y, size_t count, Level level) {
  cpu::TableFor(level).exp(x, y, count);
}

}  // namespace outrider::kernels
