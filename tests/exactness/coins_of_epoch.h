// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_COINS_OF_EPOCH_H_
#define OUTRIDER_TESTS_EXACTNESS_COINS_OF_EPOCH_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/sampling/random_source.h"

namespace outrider::testing {

// Flips other coins for each epoch; DRAFT ones are their steps' own.
class CoinsOfEpoch final : public RandomSource {
 public:
  CoinsOfEpoch(RandomSource& source, const uint64_t& epoch)
      : source_(source), epoch_(epoch) {}
  bool Accept(const CoinKey& key, double p, double q) override {
    return source_.Accept(Renamed(key), p, q);
  }
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override {
    return source_.Categorical(Renamed(key), weights);
  }
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override {
    return source_.Race(position, ids, weights);
  }

 private:
  CoinKey Renamed(const CoinKey& key) const {
    if (key.purpose == Purpose::kDraft) return key;
    return {key.purpose, key.position, epoch_};
  }

  RandomSource& source_;
  const uint64_t& epoch_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_COINS_OF_EPOCH_H_
