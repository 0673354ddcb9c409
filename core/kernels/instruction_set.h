// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_
#define OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_

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

// Whether this CPU has it; asked once. Thread-safe.
inline bool HasAvx2() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
#else
  return false;
#endif
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_KERNELS_INSTRUCTION_SET_H_
