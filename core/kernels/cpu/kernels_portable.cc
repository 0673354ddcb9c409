// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cpu/make_kernel_table.h"
#include "core/kernels/cpu/vector_portable.h"

namespace outrider::kernels::cpu {

constinit const KernelTable kPortableTable = MakeKernelTable<VectorPortable>(
    kLinearKernel<MultiplyBFloat16<VectorPortable>>);

}  // namespace outrider::kernels::cpu
