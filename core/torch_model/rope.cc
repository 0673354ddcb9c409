// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/rope.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>

namespace outrider {

RotaryAngles AnglesAt(absl::Span<const float> frequencies,
                      absl::Span<const int> positions, float magnitude) {
  const auto num_rows = static_cast<int64_t>(positions.size());
  const auto half = static_cast<int64_t>(frequencies.size());
  at::Tensor cosine = at::empty({num_rows, half}, at::kFloat);
  at::Tensor sine = at::empty({num_rows, half}, at::kFloat);
  float* c = cosine.mutable_data_ptr<float>();
  float* s = sine.mutable_data_ptr<float>();
  for (const int position : positions) {
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      *c++ = magnitude * std::cos(angle);
      *s++ = magnitude * std::sin(angle);
    }
  }
  return {cosine, sine};
}

}  // namespace outrider
