// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_TYPES_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_TYPES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

// CUDA's vector types and arithmetic, for a host's compiler. The functions of
// <cmath> that the kernels call (exp2f, fmaxf) are the host's own.

// NOLINTBEGIN: the names are CUDA's.
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

struct dim3 {
  dim3(unsigned x_size, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
  unsigned x, y, z;
};

inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
// Byte i of the result is the byte that the i-th hexadecimal digit of
// `selector` names, of the eight bytes of low and high.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const uint64_t both = uint64_t{high} << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned byte = selector >> (4 * i) & 7;
    result |= static_cast<unsigned>(both >> (8 * byte) & 0xFF) << (8 * i);
  }
  return result;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
// A block's threads take turns, so that nothing comes between.
inline int atomicAdd(int* at, int more) {
  const int before = *at;
  *at += more;
  return before;
}
inline unsigned atomicOr(unsigned* at, unsigned bits) {
  const unsigned before = *at;
  *at |= bits;
  return before;
}
using std::max;
using std::min;
// NOLINTEND

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_TYPES_H_
