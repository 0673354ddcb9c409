// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_LAUNCH_LIMITS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_LAUNCH_LIMITS_H_

#include <cstddef>

namespace outrider::kernels::cuda {

// A launch may have 48 KB, of which a kernel's own arrays take some.
constexpr size_t kSharedBytesWithoutAsking = 32 << 10;

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_LAUNCH_LIMITS_H_
