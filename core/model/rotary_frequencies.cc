// SPDX-License-Identifier: Apache-2.0
#include "core/model/rotary_frequencies.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;

// Llama 3: long wavelengths are stretched by the factor, short ones kept, and
// those between blended.
float StretchLikeLlama3(const RopeScaling& scaling, float frequency) {
  const float original = static_cast<float>(scaling.original_context_length);
  const float low = static_cast<float>(scaling.low_freq_factor);
  const float high = static_cast<float>(scaling.high_freq_factor);
  const float factor = static_cast<float>(scaling.factor);
  const float wavelength = static_cast<float>(kTwoPi) / frequency;
  if (wavelength < original / high) return frequency;
  if (wavelength > original / low) return frequency / factor;
  const float kept = (original / wavelength - low) / (high - low);
  return (1.0f - kept) * frequency / factor + kept * frequency;
}

// Which pair turns so often in the original context: pair i by
// theta^(-2 i / head_dim) a position.
double PairThatTurns(double num_turns, const ModelConfig& config) {
  const double positions = config.rope_scaling.original_context_length;
  return config.head_dim * std::log(positions / (num_turns * kTwoPi)) /
         (2 * std::log(config.rope_theta));
}

// YaRN ("NTK-by-parts", section 3.2): pairs below the first bound are kept,
// those above the second one stretched, and those between blended.
void StretchLikeYarn(const ModelConfig& config,
                     std::vector<float>& frequencies) {
  const RopeScaling& scaling = config.rope_scaling;
  double first = PairThatTurns(scaling.beta_fast, config);
  double last = PairThatTurns(scaling.beta_slow, config);
  if (scaling.has_whole_bounds) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, config.head_dim - 1.0);
  if (first == last) last += 0.001;  // as transformers, not to divide by 0
  const float factor = static_cast<float>(scaling.factor);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float beyond = (static_cast<float>(i) - static_cast<float>(first)) /
                         static_cast<float>(last - first);
    const float kept = 1.0f - std::clamp(beyond, 0.0f, 1.0f);
    frequencies[i] =
        frequencies[i] / factor * (1.0f - kept) + frequencies[i] * kept;
  }
}

void Stretch(const ModelConfig& config, std::vector<float>& frequencies) {
  const RopeScaling& scaling = config.rope_scaling;
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      return;
    case RopeScaling::Kind::kLinear:
      for (float& frequency : frequencies) {
        frequency /= static_cast<float>(scaling.factor);
      }
      return;
    case RopeScaling::Kind::kLlama3:
      for (float& frequency : frequencies) {
        frequency = StretchLikeLlama3(scaling, frequency);
      }
      return;
    case RopeScaling::Kind::kYarn:
      StretchLikeYarn(config, frequencies);
      return;
  }
}

}  // namespace

std::vector<float> RotaryFrequencies(const ModelConfig& config) {
  std::vector<float> frequencies;
  const float theta = static_cast<float>(config.rope_theta);
  const float head_dim = static_cast<float>(config.head_dim);
  for (int i = 0; i < config.head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / head_dim;
    frequencies.push_back(1.0f / std::pow(theta, exponent));
  }
  Stretch(config, frequencies);
  return frequencies;
}

}  // namespace outrider
