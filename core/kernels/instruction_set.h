// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_
#define OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_

#include "core/kernels/dispatch.h"

// For loops over whole rows (core/sampling), in plain C++ and compiled twice: a
// loop is written once as OUTRIDER_INLINE `XLoop`, a function OUTRIDER_AVX2
// `XAvx2` does nothing but call it, and where HasAvx2() that one is taken. AVX2
// brings no fused multiply-add, so that both give the same bits.
#define OUTRIDER_INLINE inline __attribute__((always_inline))
#if defined(__x86_64__)
#define OUTRIDER_AVX2 __attribute__((target("avx2")))
#else
#define OUTRIDER_AVX2
#endif

namespace outrider {

inline bool HasAvx2() { return kernels::BestLevel() >= kernels::Level::kAvx2; }

}  // namespace outrider

#endif  // OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_
