// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/token_logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/process.h"

namespace outrider {
namespace {

// The places of the `count` greatest values, in falling order, ties to the
// first.
template <typename Value>
std::vector<size_t> TopPlaces(absl::Span<const Value> values, int count) {
  std::vector<size_t> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  const size_t kept = std::min(static_cast<size_t>(count), places.size());
  std::partial_sort(places.begin(), places.begin() + kept, places.end(),
                    [&](size_t a, size_t b) {
                      return values[a] > values[b] ||
                             (values[a] == values[b] && a < b);
                    });
  places.resize(kept);
  return places;
}

// The logits themselves are taken: however improbable a token is, it has a
// finite log-probability unless it is masked.
RowScores OfRawRow(absl::Span<const float> logits, const Distribution& row,
                   int num_top, absl::Span<const TokenId> tokens) {
  // Process subtracts the maximum before it takes exponentials.
  const double maximum = *std::max_element(logits.begin(), logits.end());
  RowScores scores = {.log_normaliser = maximum + std::log(row.total())};
  for (const TokenId token : tokens) scores.tokens.push_back(logits[token]);
  for (const size_t id : TopPlaces(logits, num_top)) {
    if (std::isinf(logits[id])) break;  // from here on all are masked
    scores.top_ids.push_back(static_cast<TokenId>(id));
    scores.top_scores.push_back(logits[id]);
  }
  return scores;
}

RowScores OfProcessedRow(const Distribution& row, int num_top,
                         absl::Span<const TokenId> tokens) {
  RowScores scores;
  for (const TokenId token : tokens) {
    scores.tokens.push_back(std::log(row(token)));
  }
  for (const size_t place : TopPlaces(row.weights(), num_top)) {
    scores.top_ids.push_back(row.support()[place]);
    scores.top_scores.push_back(std::log(row.weights()[place] / row.total()));
  }
  return scores;
}

}  // namespace

absl::StatusOr<RowScores> ScoreTokens(absl::Span<const float> logits,
                                      const SamplingParams& params,
                                      const TokenHistory& history,
                                      const LogprobsOptions& options,
                                      absl::Span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (token >= 0 && static_cast<size_t>(token) < logits.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "token ", token, " is not in a row of ", logits.size(), " logits"));
  }
  const bool is_raw = options.mode == LogprobsMode::kRaw;
  OUTRIDER_ASSIGN_OR_RETURN(const Distribution row,
                            is_raw
                                ? Process(logits, /*params=*/{}, /*history=*/{})
                                : Process(logits, params, history));
  return is_raw ? OfRawRow(logits, row, options.num_top, tokens)
                : OfProcessedRow(row, options.num_top, tokens);
}

RowLogprobs ToLogprobs(const RowScores& scores) {
  RowLogprobs result;
  for (const double score : scores.tokens) {
    result.tokens.push_back(score - scores.log_normaliser);
  }
  for (size_t i = 0; i < scores.top_ids.size(); ++i) {
    result.top.push_back(
        {scores.top_ids[i], scores.top_scores[i] - scores.log_normaliser});
  }
  return result;
}

absl::StatusOr<RowLogprobs> ComputeLogprobs(absl::Span<const float> logits,
                                            const SamplingParams& params,
                                            const TokenHistory& history,
                                            const LogprobsOptions& options,
                                            absl::Span<const TokenId> tokens) {
  OUTRIDER_ASSIGN_OR_RETURN(
      const RowScores scores,
      ScoreTokens(logits, params, history, options, tokens));
  return ToLogprobs(scores);
}

}  // namespace outrider
