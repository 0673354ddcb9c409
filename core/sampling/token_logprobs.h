// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_TOKEN_LOGPROBS_H_
#define OUTRIDER_CORE_SAMPLING_TOKEN_LOGPROBS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/logit_moves.h"
#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/base/top_question.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/token_history.h"

namespace outrider {

// Which of the target's rows log-probabilities are taken from.
enum class LogprobsMode {
  kRaw,        // the model's own: softmax of its logits, before all processing
  kProcessed,  // what tokens are drawn from, after all processing
};

inline constexpr int kMaxTopLogprobs = 20;

// What is asked for of each token.
struct LogprobsOptions {
  int num_top = 0;  // 0 to kMaxTopLogprobs
  LogprobsMode mode = LogprobsMode::kRaw;

  friend bool operator==(const LogprobsOptions&,
                         const LogprobsOptions&) = default;
};

// Natural logarithm; -infinity where the token is impossible.
struct TokenLogprob {
  TokenId id = 0;
  double logprob = 0;

  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default;
};

struct RowLogprobs {
  std::vector<double> tokens = {};  // of those asked for, in their order
  // The most probable ones, falling, ties to the lowest id: num_top, or all
  // that are possible.
  std::vector<TokenLogprob> top = {};
};

// What the log-probabilities of a row are made of, so that they can travel: a
// token's is its score less the normaliser. The scores of a raw row are its
// logits, which float32 holds; those of a processed row are logarithms.
struct RowScores {
  double log_normaliser = 0;
  std::vector<double> tokens = {};    // as in RowLogprobs
  std::vector<TokenId> top_ids = {};  // as in RowLogprobs
  std::vector<double> top_scores = {};

  friend bool operator==(const RowScores&, const RowScores&) = default;
};

// A row of the target's, and what it follows from.
struct PlacedRow {
  RowView row = {};           // as for Process, or an answer in its place
  TokenHistory history = {};  // likewise
  // The draft that the row judges; nothing where none was judged.
  std::optional<TokenId> draft = {};
};

// What is asked of a row besides, where tokens are drawn from it on a device
// (DrawQuestion::scored), so that ScoreTokens can score those of `tokens`,
// which ascend, and the one that is drawn.
TopQuestion AskScores(const LogprobsOptions& options,
                      absl::Span<const TokenId> tokens,
                      const LogitMoves& moves);

// Scores `tokens` in one row, and its most probable tokens. The processed row
// is the one that judges the draft (JudgingRow). Errors are those of Process;
// INVALID_ARGUMENT where the row does not have one of `tokens`. An answer in
// place of the logits gives the same scores, but for what float32 weights move
// a normaliser by (docs/device-rows.md); INTERNAL where it does not tell one of
// `tokens`.
absl::StatusOr<RowScores> ScoreTokens(const PlacedRow& placed,
                                      const SamplingParams& params,
                                      const LogprobsOptions& options,
                                      absl::Span<const TokenId> tokens);
RowLogprobs ToLogprobs(const RowScores& scores);

// Both in one.
absl::StatusOr<RowLogprobs> ComputeLogprobs(const PlacedRow& placed,
                                            const SamplingParams& params,
                                            const LogprobsOptions& options,
                                            absl::Span<const TokenId> tokens);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_TOKEN_LOGPROBS_H_
