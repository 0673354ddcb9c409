// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_RANDOM_VALUES_H_
#define OUTRIDER_CORE_KERNELS_RANDOM_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/bfloat16.h"

// Inputs for the tests and benchmarks of this folder.
namespace outrider::kernels {

// Draws from [-1, 1), the same for the same seed.
inline std::vector<float> RandomValues(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  uint32_t state = seed * 2654435761u + 1u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return values;
}

inline std::vector<BFloat16> ToBFloat16(const std::vector<float>& values) {
  std::vector<BFloat16> rounded(values.size());
  for (size_t i = 0; i < values.size(); ++i) rounded[i] = ToBFloat16(values[i]);
  return rounded;
}

inline std::vector<float> ToFloat(const std::vector<BFloat16>& values) {
  std::vector<float> widened(values.size());
  for (size_t i = 0; i < values.size(); ++i) widened[i] = ToFloat(values[i]);
  return widened;
}

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_RANDOM_VALUES_H_
