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

// Adds so much to what each of them has, which is at least 0 then.
absl::Status Count(absl::Span<const TokenId> tokens, int change,
                   std::vector<int>& counts) {
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= counts.size()) {
      return absl::InternalError(
          absl::StrCat("token ", token, " of the history is not in a row of ",
                       counts.size(), " logits"));
    }
    counts[token] = std::max(counts[token], 0) + change;
  }
  return absl::OkStatus();
}

// Those of the text, by the number of each.
absl::StatusOr<std::vector<MovedToken>> TokensOfText(
    const SamplingParams& params, const TokenHistory& history, int vocab_size) {
  std::vector<MovedToken> tokens;
  if (!LooksAtText(params)) return tokens;
  const SplitHistory text = Split(history);
  std::vector<int> counts(vocab_size, MovedToken::kNotInText);
  // Repetition alone looks at the prompt.
  if (OUTRIDER_MUTANT(P4, params.repetition_penalty != 1, false)) {
    OUTRIDER_RETURN_IF_ERROR(Count(text.prompt, 0, counts));
  }
  OUTRIDER_RETURN_IF_ERROR(Count(text.generated, 1, counts));
  OUTRIDER_RETURN_IF_ERROR(Count(text.drafts, 1, counts));
  for (TokenId token = 0; token < vocab_size; ++token) {
    if (counts[token] == MovedToken::kNotInText) continue;
    tokens.push_back({.token = token, .num_generated = counts[token]});
  }
  return tokens;
}

// Both are ascending.
std::vector<MovedToken> WithBias(const std::vector<MovedToken>& tokens,
                                 const std::vector<LogitBias>& entries) {
  std::vector<MovedToken> all;
  all.reserve(tokens.size() + entries.size());
  auto token = tokens.begin();
  for (const LogitBias& entry : entries) {
    while (token != tokens.end() && token->token < entry.id) {
      all.push_back(*token++);
    }
    const bool is_in_text = token != tokens.end() && token->token == entry.id;
    all.push_back(is_in_text ? *token++ : MovedToken{.token = entry.id});
    all.back().bias = entry.bias;
  }
  all.insert(all.end(), token, tokens.end());
  return all;
}

}  // namespace

bool AdjustsLogits(const SamplingParams& params) {
  return LooksAtText(params) || !params.logit_bias.empty();
}

bool LooksAtText(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

absl::StatusOr<LogitMoves> MovesOf(const SamplingParams& params,
                                   const TokenHistory& history,
                                   int vocab_size) {
  LogitMoves moves = {.repetition_penalty = params.repetition_penalty,
                      .frequency_penalty = params.frequency_penalty,
                      .presence_penalty = params.presence_penalty};
  OUTRIDER_ASSIGN_OR_RETURN(moves.tokens,
                            TokensOfText(params, history, vocab_size));
  for (const LogitBias& entry : params.logit_bias) {
    if (entry.id >= 0 && entry.id < vocab_size) continue;
    return absl::InternalError(absl::StrCat("logit_bias names token ", entry.id,
                                            ", but a row has ", vocab_size,
                                            " logits"));
  }
  if (!params.logit_bias.empty()) {
    moves.tokens = WithBias(moves.tokens, params.logit_bias);
  }
  return moves;
}

void AddGenerated(TokenId token, const SamplingParams& params,
                  LogitMoves& moves) {
  if (!LooksAtText(params)) return;
  auto place = std::lower_bound(
      moves.tokens.begin(), moves.tokens.end(), token,
      [](const MovedToken& moved, TokenId id) { return moved.token < id; });
  if (place == moves.tokens.end() || place->token != token) {
    place = moves.tokens.insert(place, {.token = token});
  }
  place->num_generated = std::max(place->num_generated, 0) + 1;
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

}  // namespace outrider
