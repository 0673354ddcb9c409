// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_RANDOM_SOURCE_H_
#define OUTRIDER_CORE_SAMPLING_RANDOM_SOURCE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "core/base/token.h"

namespace outrider {

// What a random number decides. Two purposes never share one.
enum class Purpose : uint8_t {
  kUnspecified = 0,
  kDraft = 1,     // draws a draft token
  kAccept = 2,    // accepts or refuses it
  kResidual = 3,  // replaces a refused one
  kTail = 4,      // draws off the draft's support: tail, bonus, plain decoding
  kGumbel = 5,    // the coupled rule's shared noise
};

// Names one coin: equal keys see equal randomness, on every node and replay.
struct CoinKey {
  Purpose purpose = Purpose::kUnspecified;
  uint64_t position = 0;  // absolute: the prompt's tokens count
  // DRAFT: the request's step. ACCEPT of block verification, which reads coins
  // after the commit point: the block's first position. Else 0.
  uint64_t generation = 0;

  friend bool operator==(const CoinKey&, const CoinKey&) = default;
  friend auto operator<=>(const CoinKey&, const CoinKey&) = default;
};

// The only door through which chance enters. Implementations are functions of
// the key: a replay gives the same answer.
class RandomSource {
 public:
  virtual ~RandomSource() = default;

  // True with probability min(1, p / q), for 0 <= p and 0 < q: p >= q, or
  // u * q < p with u uniform in [0, 1). Never true for p = 0.
  virtual bool Accept(const CoinKey& key, double p, double q) = 0;

  // An index, drawn in proportion to the weights (not negative, of positive
  // and finite sum); never one of weight 0.
  virtual size_t Categorical(const CoinKey& key,
                             absl::Span<const double> weights) = 0;

  // The same law with the noise that `position` has for each token: the index
  // with the least E(id) / weight, the first on ties, where E is exponential
  // and a function of (position, id) alone (GUMBEL coins). Two parties that
  // ask with similar weights mostly get the same token. `ids`, not negative,
  // are as many as `weights`, which are as for Categorical.
  virtual size_t Race(uint64_t position, absl::Span<const TokenId> ids,
                      absl::Span<const double> weights) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_RANDOM_SOURCE_H_
