// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_NUMBERS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_NUMBERS_H_

#include "core/kernels/cuda/device.h"

// Conversions of the 16-bit types, rounding to nearest, ties to even: one
// instruction on a device, integer arithmetic in emulation.
namespace outrider::kernels::cuda {

__device__ inline float ToFloat(Bf16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}

__device__ inline float ToFloat(Half x) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(x.bits));
#else
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t exponent = x.bits >> 10 & 0x1Fu;
  const uint32_t fraction = x.bits & 0x3FFu;
  if (exponent == 0) {  // zero, or fraction x 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return __uint_as_float(sign | __float_as_uint(magnitude));
  }
  if (exponent == 31) {
    return __uint_as_float(sign | 0x7F800000u | fraction << 13);
  }
  return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
#endif
}

template <typename T>
__device__ T FromFloat(float x);

template <>
__device__ inline Bf16 FromFloat<Bf16>(float x) {
#ifdef __CUDA_ARCH__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
#else
  const uint32_t bits = __float_as_uint(x);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  const uint32_t to_even = 0x7FFFu + (bits >> 16 & 1u);
  return {static_cast<uint16_t>((bits + to_even) >> 16)};
#endif
}

template <>
__device__ inline Half FromFloat<Half>(float x) {
#ifdef __CUDA_ARCH__
  return {__half_as_ushort(__float2half_rn(x))};
#else
  constexpr uint32_t kInfinity = 0x7C00u;
  constexpr float kSmallestNormal = 0x1p-14f, kTooLarge = 65520.0f;
  const uint32_t sign = __float_as_uint(x) >> 16 & 0x8000u;
  const uint32_t bits = __float_as_uint(x) & 0x7FFFFFFFu;
  const float size = __uint_as_float(bits);
  if (size != size) return {static_cast<uint16_t>(sign | 0x7E00u)};
  if (size >= kTooLarge) return {static_cast<uint16_t>(sign | kInfinity)};
  if (size < kSmallestNormal) {
    // A unit is 2^-24; the sum's own rounding does ours.
    const uint32_t units = __float_as_uint(size + 0.5f) - 0x3F000000u;
    return {static_cast<uint16_t>(sign | units)};
  }
  const uint32_t to_even = 0xFFFu + (bits >> 13 & 1u);
  const uint32_t rebased = ((bits + to_even) >> 13) - (112u << 10);
  return {static_cast<uint16_t>(sign | rebased)};
#endif
}

// Two elements in a register, the first in the low half.
template <typename T>
__device__ inline uint32_t PackPair(float low, float high) {
  return FromFloat<T>(low).bits | static_cast<uint32_t>(FromFloat<T>(high).bits)
                                      << 16;
}

template <typename T>
__device__ inline float LowOf(uint32_t pair) {
  return ToFloat(T{static_cast<uint16_t>(pair)});
}
template <typename T>
__device__ inline float HighOf(uint32_t pair) {
  return ToFloat(T{static_cast<uint16_t>(pair >> 16)});
}

__device__ inline bool IsFinite(float x) { return x - x == 0.0f; }

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_NUMBERS_H_
