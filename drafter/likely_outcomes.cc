// SPDX-License-Identifier: Apache-2.0
#include "drafter/likely_outcomes.h"

#include <algorithm>
#include <limits>

#include "core/base/status_macros.h"
#include "core/sampling/process.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// Ties go to the longer one, then to the lowest id: any order that is always
// the same would do.
bool IsLikelier(const Outcome& a, const Outcome& b) {
  if (a.probability != b.probability) return a.probability > b.probability;
  if (a.num_accepted != b.num_accepted) return a.num_accepted > b.num_accepted;
  return a.next_token < b.next_token;
}

void KeepLikeliest(std::vector<Outcome>& outcomes, int most) {
  const auto count = static_cast<size_t>(most);
  if (outcomes.size() > count) {
    const auto end = outcomes.begin() + most;
    std::nth_element(outcomes.begin(), end, outcomes.end(), IsLikelier);
    outcomes.erase(end, outcomes.end());
  }
  std::sort(outcomes.begin(), outcomes.end(), IsLikelier);
}

// Of outcomes with so many tokens accepted, which all together have a
// probability of `mass`: adds the likeliest. `values` are the row's logits, and
// -infinity for what cannot come.
void AddLikeliest(int num_accepted, double mass, std::vector<double>& values,
                  int most, std::vector<Outcome>& outcomes) {
  const double maximum = Maximum(values);
  if (maximum == -std::numeric_limits<double>::infinity()) return;
  SoftmaxWeights(absl::MakeConstSpan(values), maximum, /*temperature=*/1,
                 absl::MakeSpan(values));
  const double total = Sum(values);
  const double bound = BoundOfTop(values, static_cast<size_t>(most));
  std::vector<Outcome> candidates;
  for (size_t token = 0; token < values.size(); ++token) {
    const double probability = mass * values[token] / total;
    if (values[token] < bound || probability == 0) continue;
    candidates.push_back({.num_accepted = num_accepted,
                          .next_token = static_cast<TokenId>(token),
                          .probability = probability});
  }
  KeepLikeliest(candidates, most);
  outcomes.insert(outcomes.end(), candidates.begin(), candidates.end());
}

}  // namespace

absl::StatusOr<std::vector<Outcome>> LikelyOutcomes(const LogitRows& rows,
                                                    const InFlight& in_flight,
                                                    int most) {
  std::vector<Outcome> outcomes;
  std::vector<double> values;
  double reached = 1;  // the probability that so many are accepted, or more
  for (int i = 0; i < rows.num_rows(); ++i) {
    const absl::Span<const float> logits = rows.Row(i);
    OUTRIDER_RETURN_IF_ERROR(CheckLogits(logits));
    const bool is_last = i + 1 == rows.num_rows();
    const double mass = reached * (is_last ? 1 : 1 - in_flight.acceptance);
    reached *= in_flight.acceptance;
    if (i > in_flight.max_accepted || mass == 0) continue;
    values.assign(logits.begin(), logits.end());
    if (!is_last) {
      values[in_flight.tokens[i]] = -std::numeric_limits<double>::infinity();
    }
    AddLikeliest(i, mass, values, most, outcomes);
  }
  KeepLikeliest(outcomes, most);
  return outcomes;
}

}  // namespace outrider
