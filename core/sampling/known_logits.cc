// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/known_logits.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/sampling/vector_math.h"

namespace outrider {

KnownLogits KnownOf(const TopAnswer& answer,
                    absl::Span<const double> token_values) {
  const std::vector<TokenId>& tokens = answer.tokens;
  KnownLogits known;
  size_t next = 0;  // of `tokens`
  for (size_t i = 0; i <= answer.ids.size(); ++i) {
    const bool is_end = i == answer.ids.size();
    for (; next < tokens.size() && (is_end || tokens[next] < answer.ids[i]);
         ++next) {
      known.ids.push_back(tokens[next]);
      known.values.push_back(token_values[next]);
    }
    if (is_end) break;
    known.ids.push_back(answer.ids[i]);
    known.values.push_back(double{answer.logits[i]});
  }
  if (!answer.logits.empty()) {
    known.bound =
        double{*std::min_element(answer.logits.begin(), answer.logits.end())};
  }
  return known;
}

Distribution WithIds(const Distribution& places, const KnownLogits& known) {
  std::vector<TokenId> ids;
  for (const TokenId place : places.support()) ids.push_back(known.ids[place]);
  return Distribution::FromSorted(
      std::move(ids), {places.weights().begin(), places.weights().end()});
}

double WeightOfOthers(const TopAnswer& answer, double maximum,
                      double temperature) {
  if (answer.logits.empty()) return 0;
  const double top =
      double{*std::max_element(answer.logits.begin(), answer.logits.end())};
  return answer.rest * WeightOfLogit(top, maximum, temperature);
}

double WeightOfLogit(double logit, double maximum, double temperature) {
  double weight = 0;
  SoftmaxWeights(absl::Span<const double>(&logit, 1), maximum, temperature,
                 absl::Span<double>(&weight, 1));
  return weight;
}

}  // namespace outrider
