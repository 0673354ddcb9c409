// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CPU_VECTOR_AVX512_H_
#define OUTRIDER_CORE_KERNELS_CPU_VECTOR_AVX512_H_

#include <immintrin.h>

#include "core/kernels/bfloat16.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels::cpu {

// 16 floats in one register. The interface is that of VectorPortable.
struct VectorAvx512 {
  using Float = __m512;
  static constexpr int kWidth = 16;
  static constexpr int kLinearRows = 9;
  static constexpr int LinearVectors(int /*rows*/) { return 3; }
  // Nine rows have all their sums in registers, so one stretch serves them.
  // Whether shorter ones would help more rows was not measured.
  static constexpr int kStretchSteps = 1 << 30;
  static constexpr int kValueVectors = 4;

  static OUTRIDER_KERNEL_INLINE __mmask16 First(int n) {
    return static_cast<__mmask16>((1u << n) - 1u);
  }
  static OUTRIDER_KERNEL_INLINE Float Zero() { return _mm512_setzero_ps(); }
  static OUTRIDER_KERNEL_INLINE Float Set(float x) { return _mm512_set1_ps(x); }
  static OUTRIDER_KERNEL_INLINE Float Load(const float* p) {
    return _mm512_loadu_ps(p);
  }
  static OUTRIDER_KERNEL_INLINE Float LoadFirst(const float* p, int n) {
    return _mm512_maskz_loadu_ps(First(n), p);
  }
  static OUTRIDER_KERNEL_INLINE Float Load(const BFloat16* p) {
    return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static OUTRIDER_KERNEL_INLINE Float LoadFirst(const BFloat16* p, int n) {
    return Widen(_mm256_maskz_loadu_epi16(First(n), p));
  }
  static OUTRIDER_KERNEL_INLINE void Store(float* p, Float x) {
    _mm512_storeu_ps(p, x);
  }
  static OUTRIDER_KERNEL_INLINE void StoreFirst(float* p, Float x, int n) {
    _mm512_mask_storeu_ps(p, First(n), x);
  }
  static OUTRIDER_KERNEL_INLINE void StoreFirst(BFloat16* p, Float x, int n) {
    const __m512i halves = _mm512_srli_epi32(RoundedBits(x), 16);
    _mm256_mask_storeu_epi16(p, First(n), _mm512_cvtepi32_epi16(halves));
  }
  static OUTRIDER_KERNEL_INLINE Float KeepFirst(Float x, int n) {
    return _mm512_maskz_mov_ps(First(n), x);
  }
  static OUTRIDER_KERNEL_INLINE Float MulAdd(Float a, Float b, Float c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static OUTRIDER_KERNEL_INLINE Float Max(Float a, Float b) {
    return _mm512_max_ps(a, b);
  }
  static OUTRIDER_KERNEL_INLINE Float Min(Float a, Float b) {
    return _mm512_min_ps(a, b);
  }
  static OUTRIDER_KERNEL_INLINE Float Round(Float x) {
    return _mm512_roundscale_ps(x,
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static OUTRIDER_KERNEL_INLINE Float ScaleByPowerOfTwo(Float x, Float n) {
    return _mm512_scalef_ps(x, n);
  }
  static OUTRIDER_KERNEL_INLINE Float RoundToBFloat16(Float x) {
    return _mm512_castsi512_ps(
        _mm512_and_si512(RoundedBits(x), _mm512_set1_epi32(-65536)));
  }
  static OUTRIDER_KERNEL_INLINE Float EvenBFloat16(Float pairs) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_castps_si512(pairs), 16));
  }
  static OUTRIDER_KERNEL_INLINE Float OddBFloat16(Float pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(pairs),
                                                _mm512_set1_epi32(-65536)));
  }
  // Pairs of neighbouring lanes are added, then pairs of pairs, as by SumEach.
  static OUTRIDER_KERNEL_INLINE float Sum(Float x) {
    return _mm512_reduce_add_ps(x);
  }
  static OUTRIDER_KERNEL_INLINE float MaxOf(Float x) {
    return _mm512_reduce_max_ps(x);
  }
  static OUTRIDER_KERNEL_INLINE Float SumEach(const Float* x) {
    const Float d0 = SumEachQuarter(x);
    const Float d1 = SumEachQuarter(x + 4);
    const Float d2 = SumEachQuarter(x + 8);
    const Float d3 = SumEachQuarter(x + 12);
    return AddHalves(AddHalves(d0, d1), AddHalves(d2, d3));
  }

 private:
  static OUTRIDER_KERNEL_INLINE Float Widen(__m256i halves) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
  // The upper 16 bits are the rounded value.
  static OUTRIDER_KERNEL_INLINE __m512i RoundedBits(Float x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(
        bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    return _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                                   rounded, quiet);
  }
  // Each quarter of the result holds partial sums of x[0], x[1], x[2], x[3].
  static OUTRIDER_KERNEL_INLINE Float SumEachQuarter(const Float* x) {
    const Float b0 =
        _mm512_unpacklo_ps(x[0], x[1]) + _mm512_unpackhi_ps(x[0], x[1]);
    const Float b1 =
        _mm512_unpacklo_ps(x[2], x[3]) + _mm512_unpackhi_ps(x[2], x[3]);
    return _mm512_shuffle_ps(b0, b1, 0x44) + _mm512_shuffle_ps(b0, b1, 0xee);
  }
  static OUTRIDER_KERNEL_INLINE Float AddHalves(Float a, Float b) {
    return _mm512_shuffle_f32x4(a, b, 0x88) + _mm512_shuffle_f32x4(a, b, 0xdd);
  }
};

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_VECTOR_AVX512_H_
