// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_DISTRIBUTION_H_
#define OUTRIDER_CORE_SAMPLING_DISTRIBUTION_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/base/token.h"

namespace outrider {

// A probability distribution over tokens, as ids (ascending) with positive
// weights; everything else has probability 0. P(v) = weight(v) / total, where
// total is the Sum of vector_math.h: whoever holds the same ids and weights
// computes the same probabilities, bit for bit.
// One-hot, top-N and dense rows are no special cases for whoever reads them.
// Immutable.
class Distribution {
 public:
  static Distribution OneHot(TokenId token) { return Distribution(token); }
  // INVALID_ARGUMENT unless ids are ascending and in [0, vocab_size), as many
  // as weights, at least one, and all weights positive with a finite sum.
  static absl::StatusOr<Distribution> Create(std::vector<TokenId> ids,
                                             std::vector<double> weights,
                                             int vocab_size);
  // Has the same conditions, unchecked, for callers that have just computed
  // them.
  static Distribution FromSorted(std::vector<TokenId> ids,
                                 std::vector<double> weights) {
    return Distribution(std::move(ids), std::move(weights));
  }

  // The same probabilities, but for rounding, as weights that sum to 1 as
  // nearly as they can: what a reader of the wire may insist on.
  Distribution Normalized() const;

  // Every probability is rounded to bfloat16, and those that become 0 are left
  // out: the weights are ones that two bytes can carry. A draw comes after the
  // rounding only. It takes the memory of this one.
  Distribution RoundedToBFloat16() &&;

  // Both are valid while this one stays where it is.
  absl::Span<const TokenId> support() const {
    if (is_certain()) return absl::MakeConstSpan(&certain_, 1);
    return ids_;
  }
  absl::Span<const double> weights() const {
    if (is_certain()) return absl::MakeConstSpan(&total_, 1);
    return weights_;
  }
  double total() const { return total_; }

  // The probability of `token`; 0 off the support.
  double operator()(TokenId token) const;
  // Where in the support `token` stands, if it does.
  std::optional<size_t> Find(TokenId token) const;

 private:
  explicit Distribution(TokenId certain) : certain_(certain), total_(1) {
    OUTRIDER_CHECK(certain >= 0) << "no token is " << certain;
  }
  Distribution(std::vector<TokenId> ids, std::vector<double> weights);

  bool is_certain() const { return certain_ >= 0; }

  // One token that is certain stands beside these, which are empty then: at
  // temperature 0 each row is so, and needs no memory of its own.
  std::vector<TokenId> ids_;
  std::vector<double> weights_;
  TokenId certain_ = -1;  // none
  double total_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_DISTRIBUTION_H_
