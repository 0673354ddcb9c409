// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cpu/make_kernel_table.h"
#include "core/kernels/cpu/vector_avx2.h"

namespace outrider::kernels::cpu {

constinit const KernelTable kAvx2Table =
    MakeKernelTable<VectorAvx2>(kLinearKernel<MultiplyBFloat16<VectorAvx2>>);

}  // namespace outrider::kernels::cpu
