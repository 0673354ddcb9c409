// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_MMA_H_
#define OUTRIDER_CORE_KERNELS_CUDA_MMA_H_

#include "core/kernels/cuda/numbers.h"

namespace outrider::kernels::cuda {

// D += A * B on the tensor cores, by all lanes of a warp: A is 16 x 16, B is
// 16 x 8 (k by n), both of T; D is 16 x 8 in float32. Who holds what, by the
// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", with
// g = lane / 4, t = lane % 4, and the first of two in a register's low half:
//
//   a[0] = A[g    ][2t, 2t+1]   a[2] = A[g    ][2t+8, 2t+9]
//   a[1] = A[g + 8][2t, 2t+1]   a[3] = A[g + 8][2t+8, 2t+9]
//   b[0] = B[2t, 2t+1][g]       b[1] = B[2t+8, 2t+9][g]
//   d[0], d[1] = D[g    ][2t], D[g    ][2t+1]
//   d[2], d[3] = D[g + 8][2t], D[g + 8][2t+1]
//
// An element of D depends on its own row of A and its own column of B alone.
struct FragmentA {
  uint32_t a[4];
};
struct FragmentB {
  uint32_t b[2];
};
struct FragmentD {
  float d[4];
};

// A D among what is kept as plain words (async_copy.h).
__device__ inline uint4 BitsOf(const FragmentD& sum) {
  return make_uint4(__float_as_uint(sum.d[0]), __float_as_uint(sum.d[1]),
                    __float_as_uint(sum.d[2]), __float_as_uint(sum.d[3]));
}
__device__ inline float4 FloatsOf(uint4 bits) {
  return make_float4(__uint_as_float(bits.x), __uint_as_float(bits.y),
                     __uint_as_float(bits.z), __uint_as_float(bits.w));
}

#ifndef __CUDACC__
namespace emulation {

// Sums in double, which no device does: the bits of a sum are not a device's.
template <typename T>
void EmulateMma(FragmentD& sum, const FragmentA& mine_a,
                const FragmentB& mine_b, Site site) {
  struct Both {
    FragmentA a;
    FragmentB b;
  };
  const Payload* all = Exchange(kAllLanes, Both{mine_a, mine_b}, kMma, site);
  const int lane = Lane();
  const auto element = [](uint32_t pair, int k) -> double {
    return k % 2 == 0 ? LowOf<T>(pair) : HighOf<T>(pair);
  };
  // The lane's two rows of A and its two columns of B.
  double rows[2][16], columns[2][16];
  for (int t = 0; t < 4; ++t) {
    const auto a = FromPayload<Both>(all[lane / 4 * 4 + t]).a;
    for (int i = 0; i < 2; ++i) {
      const auto b = FromPayload<Both>(all[(lane % 4 * 2 + i) * 4 + t]).b;
      for (const int k : {2 * t, 2 * t + 1, 2 * t + 8, 2 * t + 9}) {
        rows[i][k] = element(a.a[k / 8 * 2 + i], k);
        columns[i][k] = element(b.b[k / 8], k);
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    double total = sum.d[i];
    for (int k = 0; k < 16; ++k) total += rows[i / 2][k] * columns[i % 2][k];
    sum.d[i] = static_cast<float>(total);
  }
}

}  // namespace emulation
#endif

#ifdef __CUDACC__

// PTX names the type in the instruction itself.
#define OUTRIDER_MMA(type)                                               \
  asm volatile(                                                          \
      "mma.sync.aligned.m16n8k16.row.col.f32." type "." type             \
      ".f32 "                                                            \
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"            \
      : "+f"(sum.d[0]), "+f"(sum.d[1]), "+f"(sum.d[2]), "+f"(sum.d[3])   \
      : "r"(a.a[0]), "r"(a.a[1]), "r"(a.a[2]), "r"(a.a[3]), "r"(b.b[0]), \
        "r"(b.b[1]))

template <typename T>
__device__ void Mma(FragmentD& sum, const FragmentA& a, const FragmentB& b);
template <>
__device__ inline void Mma<Bf16>(FragmentD& sum, const FragmentA& a,
                                 const FragmentB& b) {
  OUTRIDER_MMA("bf16");
}
template <>
__device__ inline void Mma<Half>(FragmentD& sum, const FragmentA& a,
                                 const FragmentB& b) {
  OUTRIDER_MMA("f16");
}
#undef OUTRIDER_MMA

#else

template <typename T>
void Mma(FragmentD& sum, const FragmentA& a, const FragmentB& b,
         OUTRIDER_SITE) {
  emulation::EmulateMma<T>(sum, a, b, {file, line});
}

#endif

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_MMA_H_
