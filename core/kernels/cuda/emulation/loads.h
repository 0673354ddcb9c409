// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_LOADS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_LOADS_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/emulation/block.h"

// CUDA's load of what nobody writes meanwhile; included by device.h and
// block.cc.

namespace outrider::kernels::cuda::emulation {

// A device loads `bytes` at a time from multiples of that alone.
inline void CheckAligned(const void* from, size_t bytes, Site site) {
  if (reinterpret_cast<uintptr_t>(from) % bytes == 0) return;
  Fail("a load from an address that is no multiple of its size", site);
}

}  // namespace outrider::kernels::cuda::emulation

template <typename T>
T __ldg(const T* p, const char* file = __builtin_FILE(),  // NOLINT: CUDA's name
        int line = __builtin_LINE()) {
  namespace emulation = outrider::kernels::cuda::emulation;
  emulation::CheckAligned(p, sizeof(T), {file, line});
  return *p;
}

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_LOADS_H_
