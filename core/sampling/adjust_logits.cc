// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/adjust_logits.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

struct SplitHistory {
  absl::Span<const TokenId> prompt;
  absl::Span<const TokenId> generated;
  absl::Span<const TokenId> drafts;
};

SplitHistory Split(const TokenHistory& history) {
  const size_t prompt_length =
      std::min(static_cast<size_t>(
                   OUTRIDER_MUTANT(P2, std::max(history.prompt_length, 0), 0)),
               history.committed.size());
  return {.prompt = history.committed.first(prompt_length),
          .generated = history.committed.subspan(prompt_length),
          .drafts =
              OUTRIDER_MUTANT(P1, history.drafts, absl::Span<const TokenId>())};
}

// Adds to the number of each.
absl::Status Count(absl::Span<const TokenId> tokens, std::vector<int>& counts) {
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= counts.size()) {
      return absl::InternalError(
          absl::StrCat("token ", token, " of the history is not in a row of ",
                       counts.size(), " logits"));
    }
    ++counts[token];
  }
  return absl::OkStatus();
}

bool CountsGenerated(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.frequency_penalty != 0 ||
         params.presence_penalty != 0;
}

// Where the token is among those, or would be.
auto PlaceOf(TokenId token, std::vector<MovedToken>& tokens) {
  return std::lower_bound(tokens.begin(), tokens.end(), token,
                          [](const MovedToken& moved, TokenId other) {
                            return moved.token < other;
                          });
}

MovedToken& FindOrAdd(TokenId token, std::vector<MovedToken>& tokens) {
  const auto place = PlaceOf(token, tokens);
  if (place != tokens.end() && place->token == token) return *place;
  return *tokens.insert(place, {.token = token});
}

// Those of the history, by the number of each.
absl::StatusOr<std::vector<MovedToken>> TokensOfHistory(
    const SamplingParams& params, const TokenHistory& history, int vocab_size) {
  std::vector<MovedToken> tokens;
  if (!CountsGenerated(params)) return tokens;
  const SplitHistory text = Split(history);
  // Repetition alone looks at the prompt.
  const bool has_prompt =
      OUTRIDER_MUTANT(P4, params.repetition_penalty != 1, false);
  std::vector<int> in_prompt(has_prompt ? vocab_size : 0),
      generated(vocab_size);
  if (has_prompt) OUTRIDER_RETURN_IF_ERROR(Count(text.prompt, in_prompt));
  OUTRIDER_RETURN_IF_ERROR(Count(text.generated, generated));
  OUTRIDER_RETURN_IF_ERROR(Count(text.drafts, generated));
  for (TokenId token = 0; token < vocab_size; ++token) {
    if (generated[token] == 0 && (!has_prompt || in_prompt[token] == 0)) {
      continue;
    }
    tokens.push_back({.token = token, .num_generated = generated[token]});
  }
  return tokens;
}

}  // namespace

bool AdjustsLogits(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0 || !params.logit_bias.empty();
}

absl::StatusOr<LogitMoves> MovesOf(const SamplingParams& params,
                                   const TokenHistory& history,
                                   int vocab_size) {
  LogitMoves moves = {.repetition_penalty = params.repetition_penalty,
                      .frequency_penalty = params.frequency_penalty,
                      .presence_penalty = params.presence_penalty};
  OUTRIDER_ASSIGN_OR_RETURN(moves.tokens,
                            TokensOfHistory(params, history, vocab_size));
  for (const LogitBias& entry : params.logit_bias) {
    if (entry.id < 0 || entry.id >= vocab_size) {
      return absl::InternalError(absl::StrCat("logit_bias names token ",
                                              entry.id, ", but a row has ",
                                              vocab_size, " logits"));
    }
    FindOrAdd(entry.id, moves.tokens).bias += entry.bias;
  }
  return moves;
}

void AddGenerated(TokenId token, const SamplingParams& params,
                  LogitMoves& moves) {
  if (!CountsGenerated(params)) return;
  int& num_generated = FindOrAdd(token, moves.tokens).num_generated;
  num_generated = std::max(num_generated, 0) + 1;
}

std::vector<TokenId> TokensOf(const LogitMoves& moves) {
  std::vector<TokenId> tokens;
  tokens.reserve(moves.tokens.size());
  for (const MovedToken& moved : moves.tokens) tokens.push_back(moved.token);
  return tokens;
}

double MovedLogit(const LogitMoves& moves, const MovedToken& token,
                  double logit) {
  double value = logit + token.bias;
  if (token.num_generated == MovedToken::kNotInText) return value;
  const double repetition = moves.repetition_penalty;
  value = value > 0 ? value / repetition : value * repetition;
  if (token.num_generated == 0) return value;
  value -=
      moves.frequency_penalty * OUTRIDER_MUTANT(P5, token.num_generated, 1);
  return value - moves.presence_penalty;
}

absl::StatusOr<std::vector<double>> AdjustLogits(absl::Span<const float> logits,
                                                 const SamplingParams& params,
                                                 const TokenHistory& history) {
  OUTRIDER_ASSIGN_OR_RETURN(
      const LogitMoves moves,
      MovesOf(params, history, static_cast<int>(logits.size())));
  std::vector<double> values(logits.begin(), logits.end());
  for (const MovedToken& moved : moves.tokens) {
    double& value = values[moved.token];
    value = MovedLogit(moves, moved, value);
  }
  return values;
}

absl::StatusOr<std::vector<double>> AdjustLogitsOf(
    absl::Span<const TokenId> tokens, absl::Span<const float> logits,
    const SamplingParams& params, const TokenHistory& history) {
  OUTRIDER_ASSIGN_OR_RETURN(
      const LogitMoves moves,
      MovesOf(params, history, tokens.empty() ? 0 : tokens.back() + 1));
  if (TokensOf(moves) != tokens) {
    return absl::InternalError("these are not the tokens that are moved");
  }
  std::vector<double> values;
  values.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    values.push_back(MovedLogit(moves, moves.tokens[i], double{logits[i]}));
  }
  return values;
}

}  // namespace outrider
