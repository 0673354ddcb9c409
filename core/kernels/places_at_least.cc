// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/places_at_least.h"

#include <bit>

#include "core/kernels/instruction_set.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace outrider::kernels {
namespace {

size_t PlacesLoop(absl::Span<const double> values, size_t begin, double least,
                  int* places) {
  size_t count = 0;
  for (size_t i = begin; i < values.size(); ++i) {
    if (values[i] >= least) places[count++] = static_cast<int>(i);
  }
  return count;
}

#if defined(__x86_64__)
OUTRIDER_AVX2 size_t PlacesAvx2(absl::Span<const double> values, double least,
                                int* places) {
  constexpr size_t kWidth = 4;
  const __m256d bound = _mm256_set1_pd(least);
  size_t count = 0;
  size_t i = 0;
  for (; i + kWidth <= values.size(); i += kWidth) {
    const __m256d four = _mm256_loadu_pd(values.data() + i);
    auto mask = static_cast<unsigned>(
        _mm256_movemask_pd(_mm256_cmp_pd(four, bound, _CMP_GE_OQ)));
    for (; mask != 0; mask &= mask - 1) {
      places[count++] = static_cast<int>(i) + std::countr_zero(mask);
    }
  }
  return count + PlacesLoop(values, i, least, places + count);
}

// Sixteen places are written for as many values, of which the found ones come
// first: there is room, as no more were found than values were looked at.
OUTRIDER_AVX512 size_t PlacesAvx512(absl::Span<const double> values,
                                    double least, int* places) {
  constexpr size_t kWidth = 16;
  const __m512d bound = _mm512_set1_pd(least);
  const __m512i step = _mm512_set1_epi32(kWidth);
  __m512i at =
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  size_t count = 0;
  size_t i = 0;
  for (; i + kWidth <= values.size(); i += kWidth) {
    const __m512d eight = _mm512_loadu_pd(values.data() + i);
    const __m512d others = _mm512_loadu_pd(values.data() + i + kWidth / 2);
    const unsigned low = _mm512_cmp_pd_mask(eight, bound, _CMP_GE_OQ);
    const unsigned high = _mm512_cmp_pd_mask(others, bound, _CMP_GE_OQ);
    const auto mask = static_cast<__mmask16>(low | high << kWidth / 2);
    _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi32(mask, at));
    count += static_cast<size_t>(std::popcount(mask));
    at = _mm512_add_epi32(at, step);
  }
  return count + PlacesLoop(values, i, least, places + count);
}
#endif

}  // namespace

size_t PlacesAtLeast(absl::Span<const double> values, double least,
                     int* places) {
#if defined(__x86_64__)
  if (HasAvx512()) return PlacesAvx512(values, least, places);
  if (HasAvx2()) return PlacesAvx2(values, least, places);
#endif
  return PlacesLoop(values, 0, least, places);
}

}  // namespace outrider::kernels
