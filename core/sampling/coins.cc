// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/coins.h"

#include <cmath>
#include <limits>

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

double Coins::OpenUniform(uint64_t position, TokenId token) const {
  // A block holds the noise of two neighbours.
  const uint32_t id = static_cast<uint32_t>(token);
  const auto words = Philox4x32(
      {id / 2, static_cast<uint32_t>(position), 0,
       static_cast<uint32_t>(Purpose::kGumbel) << 24},
      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  const size_t half = id % 2 * 2;
  const uint64_t bits =
      static_cast<uint64_t>(words[half + 1]) << 32 | words[half];
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

size_t Coins::Race(uint64_t position, absl::Span<const TokenId> ids,
                   absl::Span<const double> weights) {
  OUTRIDER_CHECK(ids.size() == weights.size());
  double best = std::numeric_limits<double>::infinity();
  size_t winner = weights.size();
  for (size_t i = 0; i < weights.size(); ++i) {
    OUTRIDER_CHECK(weights[i] >= 0 && std::isfinite(weights[i]))
        << "weight " << weights[i];
    if (weights[i] <= 0) continue;
    const double uniform = OpenUniform(position, ids[i]);
    // -log(u) > 1 - u, which is exact: nearly all lose without a logarithm.
    if (winner < weights.size() && 1 - uniform >= best * weights[i]) continue;
    const double time = -std::log(uniform) / weights[i];
    if (winner == weights.size() || time < best) {
      best = time;
      winner = i;
    }
  }
  OUTRIDER_CHECK(winner < weights.size()) << "no weight is positive";
  return winner;
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
