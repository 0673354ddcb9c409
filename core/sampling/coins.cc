// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/coins.h"

#include <cmath>

#include "core/base/check.h"
#include "core/sampling/philox.h"

namespace outrider {

double Coins::Uniform(const CoinKey& key) const {
  const uint32_t purpose_and_generation =
      static_cast<uint32_t>(key.purpose) << 24 |
      static_cast<uint32_t>(key.generation >> 32 & 0xffffff);
  const auto words = Philox4x32(
      {0, static_cast<uint32_t>(key.position),
       static_cast<uint32_t>(key.generation), purpose_and_generation},
      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  const uint64_t bits = static_cast<uint64_t>(words[1]) << 32 | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

bool Coins::Accept(const CoinKey& key, double p, double q) {
  return AcceptsAt(Uniform(key), p, q);
}

size_t Coins::Categorical(const CoinKey& key,
                          absl::Span<const double> weights) {
  return ChooseByWeight(Uniform(key), weights);
}

bool AcceptsAt(double uniform, double p, double q) {
  OUTRIDER_CHECK(p >= 0 && q > 0) << "p " << p << ", q " << q;  // NaN fails too
  return p >= q || uniform * q < p;
}

size_t ChooseByWeight(double uniform, absl::Span<const double> weights) {
  double total = 0;
  for (const double weight : weights) total += weight;
  OUTRIDER_CHECK(std::isfinite(total)) << "the weights sum to " << total;
  const double threshold = uniform * total;
  double running = 0;
  size_t last_possible = weights.size();
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    running += weights[i];
    if (running > threshold) return i;
    last_possible = i;  // rounding may leave the whole sum at the threshold
  }
  OUTRIDER_CHECK(last_possible < weights.size()) << "no weight is positive";
  return last_possible;
}

}  // namespace outrider
