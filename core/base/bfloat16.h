// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_BFLOAT16_H_
#define OUTRIDER_CORE_BASE_BFLOAT16_H_

#include <bit>
#include <cstdint>

namespace outrider {

// The upper half of a float32. Trivial: caches are raw memory of these.
struct BFloat16 {
  uint16_t bits;
  friend bool operator==(const BFloat16&, const BFloat16&) = default;
};

// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
inline BFloat16 ToBFloat16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  const uint32_t to_even = 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<uint16_t>((bits + to_even) >> 16)};
}

inline float ToFloat(BFloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_BFLOAT16_H_
