// SPDX-License-Identifier: Apache-2.0
#include "core/model/rotary_frequencies.h"

#include <cmath>

namespace outrider {
namespace {

constexpr float kTwoPi = 6.28318530717958647692f;

// Llama 3: long wavelengths are stretched by the factor, short ones kept, and
// those between blended.
float StretchLikeLlama3(const RopeScaling& scaling, float frequency) {
  const float original = static_cast<float>(scaling.original_context_length);
  const float low = static_cast<float>(scaling.low_freq_factor);
  const float high = static_cast<float>(scaling.high_freq_factor);
  const float factor = static_cast<float>(scaling.factor);
  const float wavelength = kTwoPi / frequency;
  if (wavelength < original / high) return frequency;
  if (wavelength > original / low) return frequency / factor;
  const float kept = (original / wavelength - low) / (high - low);
  return (1.0f - kept) * frequency / factor + kept * frequency;
}

float Stretch(const RopeScaling& scaling, float frequency) {
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      return frequency;
    case RopeScaling::Kind::kLinear:
      return frequency / static_cast<float>(scaling.factor);
    case RopeScaling::Kind::kLlama3:
      return StretchLikeLlama3(scaling, frequency);
  }
  return frequency;
}

}  // namespace

std::vector<float> RotaryFrequencies(const ModelConfig& config) {
  std::vector<float> frequencies;
  const float theta = static_cast<float>(config.rope_theta);
  const float head_dim = static_cast<float>(config.head_dim);
  for (int i = 0; i < config.head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / head_dim;
    frequencies.push_back(
        Stretch(config.rope_scaling, 1.0f / std::pow(theta, exponent)));
  }
  return frequencies;
}

}  // namespace outrider
