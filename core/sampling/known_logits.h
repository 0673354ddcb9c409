// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_KNOWN_LOGITS_H_
#define OUTRIDER_CORE_SAMPLING_KNOWN_LOGITS_H_

#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/base/top_question.h"
#include "core/sampling/distribution.h"

namespace outrider {

// The tokens of a row whose logits an answer tells.
struct KnownLogits {
  std::vector<TokenId> ids = {};  // ascending
  std::vector<double> values = {};
  // No token that is not among them has a greater logit.
  double bound = -std::numeric_limits<double>::infinity();
};

// `token_values` are those that TopAnswer::tokens have, moved or not.
KnownLogits KnownOf(const TopAnswer& answer,
                    absl::Span<const double> token_values);

// What is drawn from, over the ids of the row in place of places in `known`.
Distribution WithIds(const Distribution& places, const KnownLogits& known);

// What the others weigh together where a logit of `maximum` weighs 1: the
// answer tells it over the greatest of TopAnswer::ids.
double WeightOfOthers(const TopAnswer& answer, double maximum,
                      double temperature);

// The weight of one logit there.
double WeightOfLogit(double logit, double maximum, double temperature);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_KNOWN_LOGITS_H_
