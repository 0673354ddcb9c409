// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/token_logprobs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/known_logits.h"
#include "core/sampling/lenience.h"
#include "core/sampling/process.h"
#include "core/sampling/vector_math.h"

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

// What tokens are drawn from, as ScoreDraft has it.
absl::StatusOr<Distribution> ProcessedRow(const PlacedRow& placed,
                                          const SamplingParams& params) {
  const absl::Span<const float> logits = placed.row.logits;
  OUTRIDER_ASSIGN_OR_RETURN(Distribution row,
                            Process(logits, params, placed.history));
  if (!placed.draft.has_value()) return row;
  return JudgingRow(std::move(row), *placed.draft, logits, params,
                    placed.history);
}

absl::StatusOr<RowScores> OfWholeRow(const PlacedRow& placed,
                                     const SamplingParams& params,
                                     const LogprobsOptions& options,
                                     absl::Span<const TokenId> tokens) {
  const absl::Span<const float> logits = placed.row.logits;
  for (const TokenId token : tokens) {
    if (token >= 0 && static_cast<size_t>(token) < logits.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "token ", token, " is not in a row of ", logits.size(), " logits"));
  }
  const bool is_raw = options.mode == LogprobsMode::kRaw;
  OUTRIDER_ASSIGN_OR_RETURN(const Distribution row,
                            is_raw
                                ? Process(logits, /*params=*/{}, /*history=*/{})
                                : ProcessedRow(placed, params));
  return is_raw ? OfRawRow(logits, row, options.num_top, tokens)
                : OfProcessedRow(row, options.num_top, tokens);
}

// A row by what was told of it: the greatest of its logits are among those that
// are known, and one more token may have been drawn.
struct AnsweredRow {
  const TopAnswer& told;
  KnownLogits known;
  std::optional<TokenId> drawn = {};
  float drawn_logit = 0;

  absl::StatusOr<double> ValueOf(TokenId token) const {
    const auto place =
        std::lower_bound(known.ids.begin(), known.ids.end(), token);
    if (place != known.ids.end() && *place == token) {
      return known.values[place - known.ids.begin()];
    }
    if (token == drawn) return double{drawn_logit};
    return absl::InternalError(
        absl::StrCat("an answered row does not tell token ", token));
  }
};

absl::StatusOr<RowScores> OfRawAnswer(const AnsweredRow& row, int num_top,
                                      absl::Span<const TokenId> tokens) {
  const absl::Span<const double> values = row.known.values;
  RowScores scores = {.log_normaliser =
                          Maximum(values) - std::log(row.told.top_probability)};
  for (const TokenId token : tokens) {
    OUTRIDER_ASSIGN_OR_RETURN(const double value, row.ValueOf(token));
    scores.tokens.push_back(value);
  }
  for (const size_t place : TopPlaces(values, num_top)) {
    if (std::isinf(values[place])) break;  // from here on all are masked
    scores.top_ids.push_back(row.known.ids[place]);
    scores.top_scores.push_back(values[place]);
  }
  return scores;
}

// The row is cut nowhere, and the temperature above 0.
absl::StatusOr<RowScores> OfUncutAnswer(const AnsweredRow& row,
                                        double temperature, int num_top,
                                        absl::Span<const TokenId> tokens) {
  const absl::Span<const double> values = row.known.values;
  const double maximum = Maximum(values);
  std::vector<double> weights(values.size());
  SoftmaxWeights(values, maximum, temperature, absl::MakeSpan(weights));
  const double total =
      Sum(weights) + WeightOfOthers(row.told, maximum, temperature);
  RowScores scores;
  for (const TokenId token : tokens) {
    OUTRIDER_ASSIGN_OR_RETURN(const double value, row.ValueOf(token));
    scores.tokens.push_back(
        std::log(WeightOfLogit(value, maximum, temperature) / total));
  }
  for (const size_t place : TopPlaces(absl::MakeConstSpan(weights), num_top)) {
    if (weights[place] == 0) break;  // from here on all are impossible
    scores.top_ids.push_back(row.known.ids[place]);
    scores.top_scores.push_back(std::log(weights[place] / total));
  }
  return scores;
}

// The logits of TopAnswer::tokens, of which all that `params` move are some.
absl::StatusOr<std::vector<double>> MovedLogits(const TopAnswer& told,
                                                const SamplingParams& params,
                                                const TokenHistory& history) {
  std::vector<double> values(told.token_logits.begin(),
                             told.token_logits.end());
  const int end = told.tokens.empty() ? 0 : told.tokens.back() + 1;
  OUTRIDER_ASSIGN_OR_RETURN(const LogitMoves moves,
                            MovesOf(params, history, end));
  auto token = told.tokens.begin();
  for (const MovedToken& moved : moves.tokens) {
    token = std::lower_bound(token, told.tokens.end(), moved.token);
    double& value = values[token - told.tokens.begin()];
    value = MovedLogit(moves, moved, value);
  }
  return values;
}

absl::StatusOr<RowScores> OfAnswer(const RowAnswer& answer,
                                   const SamplingParams& params,
                                   const TokenHistory& history,
                                   const LogprobsOptions& options,
                                   absl::Span<const TokenId> tokens) {
  const auto* draw = std::get_if<DrawAnswer>(&answer);
  const TopAnswer* const told = draw == nullptr ? &std::get<TopAnswer>(answer)
                                : draw->scored.has_value() ? &*draw->scored
                                                           : nullptr;
  if (told == nullptr) {
    return absl::InternalError("nothing was asked that a score is made of");
  }
  const bool is_raw = options.mode == LogprobsMode::kRaw;
  if (!is_raw && told->row != nullptr) {
    return OfProcessedRow(*told->row, options.num_top, tokens);
  }
  std::vector<double> values(told->token_logits.begin(),
                             told->token_logits.end());
  if (!is_raw) {
    OUTRIDER_ASSIGN_OR_RETURN(values, MovedLogits(*told, params, history));
  }
  AnsweredRow row = {.told = *told, .known = KnownOf(*told, values)};
  if (row.known.ids.empty()) {
    return absl::InternalError("an answered row tells no token");
  }
  if (draw != nullptr) {
    row.drawn = draw->drawn;
    row.drawn_logit = draw->drawn_logit;
  }
  if (is_raw) return OfRawAnswer(row, options.num_top, tokens);
  if (!IsGreedy(params)) {
    return OfUncutAnswer(row, params.temperature, options.num_top, tokens);
  }
  const auto best =
      std::max_element(row.known.values.begin(), row.known.values.end());
  const TokenId argmax = row.known.ids[best - row.known.values.begin()];
  return OfProcessedRow(Distribution::OneHot(argmax), options.num_top, tokens);
}

}  // namespace

TopQuestion AskScores(const LogprobsOptions& options,
                      absl::Span<const TokenId> tokens,
                      const LogitMoves& moves) {
  TopQuestion question = {
      .count = std::max(options.num_top, 1),
      .tokens = {tokens.begin(), tokens.end()},
      .wants_top_probability = options.mode == LogprobsMode::kRaw};
  if (options.mode == LogprobsMode::kProcessed) {
    const std::vector<TokenId> moved = TokensOf(moves);
    question.tokens.clear();
    std::set_union(tokens.begin(), tokens.end(), moved.begin(), moved.end(),
                   std::back_inserter(question.tokens));
  }
  return question;
}

absl::StatusOr<RowScores> ScoreTokens(const PlacedRow& placed,
                                      const SamplingParams& params,
                                      const LogprobsOptions& options,
                                      absl::Span<const TokenId> tokens) {
  // A lossy lenience at temperature 0 asks for whole rows (AskRows).
  return placed.row.answer == nullptr
             ? OfWholeRow(placed, params, options, tokens)
             : OfAnswer(*placed.row.answer, params, placed.history, options,
                        tokens);
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

absl::StatusOr<RowLogprobs> ComputeLogprobs(const PlacedRow& placed,
                                            const SamplingParams& params,
                                            const LogprobsOptions& options,
                                            absl::Span<const TokenId> tokens) {
  OUTRIDER_ASSIGN_OR_RETURN(const RowScores scores,
                            ScoreTokens(placed, params, options, tokens));
  return ToLogprobs(scores);
}

}  // namespace outrider
