// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cpu/make_kernel_table.h"
#include "core/kernels/cpu/vector_avx512.h"

namespace outrider::kernels::cpu {

constinit const KernelTable kAvx512Table = MakeKernelTable<VectorAvx512>(
    kLinearKernel<MultiplyBFloat16<VectorAvx512>>);

}  // namespace outrider::kernels::cpu
