// SPDX-License-Identifier: Apache-2.0
#include "drafter/likely_outcomes.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "core/base/status_macros.h"
#include "core/sampling/process.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// Ties go to the longer one, then to the lowest id: any order that is always
// the same would do.
bool IsLikelier(const LikelyOutcome& a, const LikelyOutcome& b) {
  if (a.probability != b.probability) return a.probability > b.probability;
  if (a.num_accepted != b.num_accepted) return a.num_accepted > b.num_accepted;
  return a.next_token < b.next_token;
}

void KeepLikeliest(std::vector<LikelyOutcome>& outcomes, int most) {
  const auto count = static_cast<size_t>(most);
  if (outcomes.size() > count) {
    const auto end = outcomes.begin() + most;
    std::nth_element(outcomes.begin(), end, outcomes.end(), IsLikelier);
    outcomes.erase(end, outcomes.end());
  }
  std::sort(outcomes.begin(), outcomes.end(), IsLikelier);
}

// Adds the likeliest of the outcomes with so many tokens accepted, which all
// together have a probability of `mass`. `values` are the row's logits, and
// -infinity for what cannot come.
void AddLikeliest(int num_accepted, double mass, std::vector<double>& values,
                  int most, std::vector<LikelyOutcome>& outcomes) {
  const double maximum = Maximum(values);
  if (most == 0 || maximum == -std::numeric_limits<double>::infinity()) return;
  SoftmaxWeights(absl::MakeConstSpan(values), maximum, /*temperature=*/1,
                 absl::MakeSpan(values));
  const double total = Sum(values);
  const double bound = BoundOfTop(values, static_cast<size_t>(most));
  std::vector<LikelyOutcome> candidates;
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

// The same from an answer, which has none but the likeliest.
void AddAnswered(int num_accepted, double mass, const TopAnswer& answer,
                 std::vector<LikelyOutcome>& outcomes) {
  std::vector<double> weights(answer.logits.begin(), answer.logits.end());
  SoftmaxWeights(absl::MakeConstSpan(weights), Maximum(weights),
                 /*temperature=*/1, absl::MakeSpan(weights));
  const double total = Sum(weights) + answer.rest;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double probability = mass * weights[i] / total;
    if (probability == 0) continue;
    outcomes.push_back({.num_accepted = num_accepted,
                        .next_token = answer.ids[i],
                        .probability = probability});
  }
}

}  // namespace

std::vector<RowQuestion> AskOutcomes(const InFlight& in_flight, int most,
                                     int vocab_size) {
  std::vector<RowQuestion> questions;
  for (size_t i = 0; i <= in_flight.tokens.size(); ++i) {
    // Whether a row that allows nothing else is one at all, it says itself.
    TopQuestion top = {.count = most, .suffices = [](const TopAnswer& answer) {
                         return !answer.ids.empty();
                       }};
    if (i < in_flight.tokens.size()) top.tokens = {in_flight.tokens[i]};
    questions.push_back(
        {.vocab_size = vocab_size, .temperature = 1, .what = std::move(top)});
  }
  return questions;
}

absl::StatusOr<std::vector<LikelyOutcome>> LikelyOutcomes(
    const LogitRows& rows, const InFlight& in_flight, int most) {
  std::vector<LikelyOutcome> outcomes;
  std::vector<double> values;
  double reached = 1;  // the probability that so many are accepted, or more
  for (int i = 0; i < rows.num_rows(); ++i) {
    const RowView row = rows.View(i);
    if (row.answer == nullptr) {
      OUTRIDER_RETURN_IF_ERROR(CheckLogits(row.logits));
    }
    const bool is_last = i + 1 == rows.num_rows();
    const double mass = reached * (is_last ? 1 : 1 - in_flight.acceptance);
    reached *= in_flight.acceptance;
    if (i > in_flight.max_accepted || mass == 0) continue;
    if (row.answer != nullptr) {
      AddAnswered(i, mass, std::get<TopAnswer>(*row.answer), outcomes);
      continue;
    }
    values.assign(row.logits.begin(), row.logits.end());
    if (!is_last) {
      values[in_flight.tokens[i]] = -std::numeric_limits<double>::infinity();
    }
    AddLikeliest(i, mass, values, most, outcomes);
  }
  KeepLikeliest(outcomes, most);
  return outcomes;
}

}  // namespace outrider
