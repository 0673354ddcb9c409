// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CPU_VECTOR_PORTABLE_H_
#define OUTRIDER_CORE_KERNELS_CPU_VECTOR_PORTABLE_H_

#include <cstdint>
#include <cstring>

#include "core/kernels/bfloat16.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels::cpu {

// 4 floats, as the compilers' own vector type: SSE2 on any x86-64.
//
// The interface of every vector type, beside the compilers' + - * / on Float:
//   LoadFirst, StoreFirst   the first n lanes; loading makes the others 0
//   KeepFirst               makes all lanes but the first n 0
//   Max, Min                of (a, b): b where either is NaN
//   Round                   to the nearest integer, for |x| < 2^22
//   ScaleByPowerOfTwo       x * 2^n for whole n in [-252, 254]
//   RoundToBFloat16         as ToBFloat16, the result still in float32
//   EvenBFloat16, OddB…     the lower and upper half of each 32 bits, widened
//   SumEach                 lane i is the sum over the lanes of x[i], added in
//                           the same order for every i
//   kLinearRows             rows that Linear takes at once, each with as many
//   LinearVectors(rows)     vectors of outputs: the sums fit the registers, and
//                           are enough to hide that each is a slow chain
//   kStretchSteps           steps along k that some rows and outputs of a group
//                           are multiplied by before the others are
//   kValueVectors           vectors of head_dim that attention sums at once
struct VectorPortable {
  static constexpr int kWidth = 4;
  using Float = float __attribute__((vector_size(16)));
  using Bits = uint32_t __attribute__((vector_size(16)));
  static constexpr int kLinearRows = 3;
  static constexpr int LinearVectors(int rows) { return rows <= 1 ? 4 : 2; }
  static constexpr int kStretchSteps = 16;
  static constexpr int kValueVectors = 2;

  static OUTRIDER_KERNEL_INLINE Float Zero() { return Float{}; }
  static OUTRIDER_KERNEL_INLINE Float Set(float x) { return Float{x, x, x, x}; }
  static OUTRIDER_KERNEL_INLINE Float Load(const float* p) {
    Float x;
    std::memcpy(&x, p, sizeof(x));
    return x;
  }
  static OUTRIDER_KERNEL_INLINE Float LoadFirst(const float* p, int n) {
    Float x = {};
    for (int i = 0; i < n; ++i) x[i] = p[i];
    return x;
  }
  static OUTRIDER_KERNEL_INLINE Float Load(const BFloat16* p) {
    return LoadFirst(p, kWidth);
  }
  static OUTRIDER_KERNEL_INLINE Float LoadFirst(const BFloat16* p, int n) {
    Bits x = {};
    for (int i = 0; i < n; ++i) x[i] = uint32_t{p[i].bits} << 16;
    return FromBits(x);
  }
  static OUTRIDER_KERNEL_INLINE void Store(float* p, Float x) {
    std::memcpy(p, &x, sizeof(x));
  }
  static OUTRIDER_KERNEL_INLINE void StoreFirst(float* p, Float x, int n) {
    for (int i = 0; i < n; ++i) p[i] = x[i];
  }
  static OUTRIDER_KERNEL_INLINE void StoreFirst(BFloat16* p, Float x, int n) {
    const Bits rounded = RoundedBits(x);
    for (int i = 0; i < n; ++i) {
      p[i].bits = static_cast<uint16_t>(rounded[i] >> 16);
    }
  }
  static OUTRIDER_KERNEL_INLINE Float KeepFirst(Float x, int n) {
    for (int i = n; i < kWidth; ++i) x[i] = 0.0f;
    return x;
  }
  static OUTRIDER_KERNEL_INLINE Float MulAdd(Float a, Float b, Float c) {
    return a * b + c;
  }
  static OUTRIDER_KERNEL_INLINE Float Max(Float a, Float b) {
    for (int i = 0; i < kWidth; ++i) b[i] = a[i] > b[i] ? a[i] : b[i];
    return b;
  }
  static OUTRIDER_KERNEL_INLINE Float Min(Float a, Float b) {
    for (int i = 0; i < kWidth; ++i) b[i] = a[i] < b[i] ? a[i] : b[i];
    return b;
  }
  // The last place of a float of this magnitude is 1.
  static OUTRIDER_KERNEL_INLINE Float Round(Float x) {
    const Float magic = Set(0x1.8p23f);
    return (x + magic) - magic;
  }
  // There are two steps, as 2^n itself may be no float where the product is.
  static OUTRIDER_KERNEL_INLINE Float ScaleByPowerOfTwo(Float x, Float n) {
    Float first, second;
    for (int i = 0; i < kWidth; ++i) {
      // A NaN has no whole part, and is one whatever it is multiplied by.
      const int whole = n[i] == n[i] ? static_cast<int>(n[i]) : 0;
      first[i] = PowerOfTwo(whole / 2);
      second[i] = PowerOfTwo(whole - whole / 2);
    }
    return x * first * second;
  }
  static OUTRIDER_KERNEL_INLINE Float RoundToBFloat16(Float x) {
    return FromBits(RoundedBits(x) & 0xffff0000u);
  }
  static OUTRIDER_KERNEL_INLINE Float EvenBFloat16(Float pairs) {
    return FromBits(ToBits(pairs) << 16);
  }
  static OUTRIDER_KERNEL_INLINE Float OddBFloat16(Float pairs) {
    return FromBits(ToBits(pairs) & 0xffff0000u);
  }
  static OUTRIDER_KERNEL_INLINE float Sum(Float x) {
    return (x[0] + x[1]) + (x[2] + x[3]);
  }
  static OUTRIDER_KERNEL_INLINE float MaxOf(Float x) {
    const float a = x[0] > x[1] ? x[0] : x[1];
    const float b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
  }
  static OUTRIDER_KERNEL_INLINE Float SumEach(const Float* x) {
    return Float{Sum(x[0]), Sum(x[1]), Sum(x[2]), Sum(x[3])};
  }

 private:
  static OUTRIDER_KERNEL_INLINE Bits ToBits(Float x) {
    Bits bits;
    std::memcpy(&bits, &x, sizeof(x));
    return bits;
  }
  static OUTRIDER_KERNEL_INLINE Float FromBits(Bits bits) {
    Float x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
  }
  static OUTRIDER_KERNEL_INLINE float PowerOfTwo(int n) {
    const uint32_t bits = static_cast<uint32_t>(n + 127) << 23;
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
  }
  // The upper 16 bits are the rounded value.
  static OUTRIDER_KERNEL_INLINE Bits RoundedBits(Float x) {
    const Bits bits = ToBits(x);
    Bits rounded = bits + (((bits >> 16) & 1u) + 0x7fffu);
    for (int i = 0; i < kWidth; ++i) {
      if (x[i] != x[i]) rounded[i] = bits[i] | 0x400000u;
    }
    return rounded;
  }
};

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_VECTOR_PORTABLE_H_
