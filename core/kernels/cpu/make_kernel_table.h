// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CPU_MAKE_KERNEL_TABLE_H_
#define OUTRIDER_CORE_KERNELS_CPU_MAKE_KERNEL_TABLE_H_

#include "core/kernels/cpu/attention_impl.h"
#include "core/kernels/cpu/elementwise_impl.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/linear_impl.h"

namespace outrider::kernels::cpu {

// The kernels over vectors V, with the level's own way to multiply bfloat16.
template <class V>
consteval KernelTable MakeKernelTable(LinearKernel linear_bfloat16) {
  return {.linear_float32 = kLinearKernel<MultiplyFloat32<V>>,
          .linear_bfloat16 = linear_bfloat16,
          .attention = Attention<V>,
          .store_rows = StoreRows<V>,
          .rms_norm = RmsNorm<V>,
          .layer_norm = LayerNorm<V>,
          .apply_rope = ApplyRope<V>,
          .silu_mul = SiluMul<V>,
          .gelu_new = GeluNew<V>,
          .exp = Exp<V>};
}

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_MAKE_KERNEL_TABLE_H_
