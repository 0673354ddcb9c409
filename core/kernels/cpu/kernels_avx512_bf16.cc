// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "core/kernels/cpu/make_kernel_table.h"
#include "core/kernels/cpu/vector_avx512.h"

namespace outrider::kernels::cpu {
namespace {

// A type of its own, for this file is compiled with more instructions than the
// level below.
struct VectorAvx512Bf16 : VectorAvx512 {};

// vdpbf16ps: a step is two k. The instruction takes denormals as zeros.
struct MultiplyPairs {
  using Vector = VectorAvx512Bf16;
  static constexpr int kMaxRows = Vector::kLinearRows;
  struct X {
    BFloat16 pair[2];
  };
  using Weights = __m512bh;
  using Factor = __m512bh;

  static OUTRIDER_KERNEL_INLINE int NumSteps(int in) {
    return PackedLayout::BFloat16Steps(in);
  }
  static void Prepare(const float* x, int in, X* to) {
    BFloat16* flat = to->pair;
    int k = 0;
    for (; k < in; k += Vector::kWidth) {
      const int n = in - k < Vector::kWidth ? in - k : Vector::kWidth;
      Vector::StoreFirst(flat + k, LoadN<Vector>(x + k, n), n);
    }
    for (k = in; k < 2 * NumSteps(in); ++k) flat[k].bits = 0;
  }
  static OUTRIDER_KERNEL_INLINE Weights Load(const float* w) {
    return (__m512bh)_mm512_loadu_si512(w);
  }
  static OUTRIDER_KERNEL_INLINE Factor Broadcast(const X* x) {
    int32_t pair;
    __builtin_memcpy(&pair, x, sizeof(pair));
    return (__m512bh)_mm512_set1_epi32(pair);
  }
  static OUTRIDER_KERNEL_INLINE __m512 Step(__m512 sum, Weights w, Factor x) {
    return _mm512_dpbf16_ps(sum, w, x);
  }
};

}  // namespace

constinit const KernelTable kAvx512Bf16Table =
    MakeKernelTable<VectorAvx512Bf16>(kLinearKernel<MultiplyPairs>);

}  // namespace outrider::kernels::cpu
