// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_BFLOAT16_H_
#define OUTRIDER_CORE_KERNELS_BFLOAT16_H_

#include <bit>
#include <cstdint>

namespace outrider::kernels {

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

// What weights and caches are made of; activations are always float32.
enum class ElementType { kFloat32, kBFloat16 };

// Elements to read, of a type known at run time. Does not own them.
struct ConstElements {
  ConstElements() = default;
  ConstElements(const float* elements) : data(elements) {}
  ConstElements(const BFloat16* elements)
      : type(ElementType::kBFloat16), data(elements) {}

  ElementType type = ElementType::kFloat32;
  const void* data = nullptr;
};

// Elements to write, of a type known at run time. Does not own them.
struct Elements {
  Elements() = default;
  Elements(float* elements) : data(elements) {}
  Elements(BFloat16* elements) : type(ElementType::kBFloat16), data(elements) {}

  ElementType type = ElementType::kFloat32;
  void* data = nullptr;
};

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_BFLOAT16_H_
