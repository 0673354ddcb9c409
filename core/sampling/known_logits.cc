// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/known_logits.h"

#include <cstddef>
#include <utility>

#include "core/sampling/vector_math.h"

namespace outrider {

KnownLogits KnownOf(const TopAnswer& answer,
                    absl::Span<const double> token_values) {
  const std::vector<TokenId>& tokens = answer.tokens;
  KnownLogits known;
  if (!answer.logits.empty()) known.bound = double{Minimum(answer.logits)};
  if (tokens.empty()) {
    known.ids = answer.ids;
    known.values.assign(answer.logits.begin(), answer.logits.end());
    return known;
  }
  known.ids.reserve(tokens.size() + answer.ids.size());
  known.values.reserve(tokens.size() + answer.ids.size());
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
  return known;
}

Distribution WithIds(const Distribution& places, const KnownLogits& known) {
  std::vector<TokenId> ids;
  ids.reserve(places.support().size());
  for (const TokenId place : places.support()) ids.push_back(known.ids[place]);
  return Distribution::FromSorted(
      std::move(ids), {places.weights().begin(), places.weights().end()});
}

double WeightOfOthers(const TopAnswer& answer, double maximum,
                      double temperature) {
  if (answer.logits.empty()) return 0;
  const double top = double{Maximum(absl::MakeConstSpan(answer.logits))};
  return answer.rest * WeightOfLogit(top, maximum, temperature);
}

double WeightOfLogit(double logit, double maximum, double temperature) {
  double weight = 0;
  SoftmaxWeights(absl::Span<const double>(&logit, 1), maximum, temperature,
                 absl::Span<double>(&weight, 1));
  return weight;
}

}  // namespace outrider
