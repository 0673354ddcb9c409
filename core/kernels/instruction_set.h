// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_
#define OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_

#include "core/kernels/dispatch.h"

// These are for loops over whole rows (core/sampling), in plain C++ and
// compiled more than once: a loop is written once as OUTRIDER_INLINE `XLoop`,
// the functions OUTRIDER_AVX2 `XAvx2` and, where it pays, OUTRIDER_AVX512
// `XAvx512` do nothing but call it, and HasAvx2 or ForThisCpu says which is
// taken. All give the same bits, as none has fused multiply-adds
// (-ffp-contract=off).
#define OUTRIDER_INLINE inline __attribute__((always_inline))
#if defined(__x86_64__)
#define OUTRIDER_AVX2 __attribute__((target("avx2")))
#if defined(__clang__)
#define OUTRIDER_AVX512                                        \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), \
                 min_vector_width(512)))
#else
#define OUTRIDER_AVX512 \
  __attribute__((       \
      target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif
#else
#define OUTRIDER_AVX2
#define OUTRIDER_AVX512
#endif

namespace outrider {

inline bool HasAvx2() { return kernels::BestLevel() >= kernels::Level::kAvx2; }
inline bool HasAvx512() {
  return kernels::BestLevel() >= kernels::Level::kAvx512;
}

template <typename Function>
Function* ForThisCpu(Function* plain, Function* avx2, Function* avx512) {
  if (HasAvx512()) return avx512;
  return HasAvx2() ? avx2 : plain;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_
