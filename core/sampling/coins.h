// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_COINS_H_
#define OUTRIDER_CORE_SAMPLING_COINS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "core/sampling/random_source.h"

namespace outrider {

// The production RandomSource: every coin is a pure function of (seed, key), so
// a retry, another node or another thread flips the same one. The only place
// that forms Philox counters. Immutable, hence thread-safe.
class Coins final : public RandomSource {
 public:
  explicit Coins(uint64_t seed) : seed_(seed) {}

  bool Accept(const CoinKey& key, double p, double q) override;
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override;
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override;

  // A number in [0, 1) with 53 random bits: 24 could not reach every token of a
  // vocabulary of 128k.
  double Uniform(const CoinKey& key) const;
  // A number in (0, 1): its logarithm is finite.
  double OpenUniform(uint64_t position, TokenId token) const;

 private:
  // The random bits of `bits.size()` tokens from `first` on; both are even.
  void NoiseBits(uint64_t position, TokenId first,
                 absl::Span<uint64_t> bits) const;

  uint64_t seed_;
};

// What `uniform` in [0, 1) says to p and q: p >= q, or uniform * q < p. The
// inequality is strict, so that p = 0 is never accepted.
bool AcceptsAt(double uniform, double p, double q);

// The index that `uniform` in [0, 1) chooses: the first at which the sum of the
// weights so far exceeds uniform times the total. Never one of weight 0.
size_t ChooseByWeight(double uniform, absl::Span<const double> weights);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_COINS_H_
