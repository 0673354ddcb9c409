// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_ADJUST_LOGITS_H_
#define OUTRIDER_CORE_SAMPLING_ADJUST_LOGITS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/logit_moves.h"
#include "core/base/token.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/token_history.h"

namespace outrider {

// The part of Process that changes logits before anything is cut: bias and
// penalties. Whether these parameters ask for any of it.
bool AdjustsLogits(const SamplingParams& params);

// Changes the logit x of a token so, in this order:
//   logit bias:          x + bias
//   repetition penalty:  x / r where x > 0, x * r else, if the token is in the
//                        history, prompt included (Keskar et al. 2019,
//                        "CTRL", section 4.1; in its two-sided form)
//   frequency penalty:   x - f * (times the token was generated)
//   presence penalty:    x - p if it was generated at all
// The result is in double precision, where no logit can overflow; -inf, a mask,
// stays so. Costs one pass over history and row. `logits` holds no NaN and no
// +inf; `params` are valid. INTERNAL where the history or the bias names a
// token that the row does not have.
absl::StatusOr<std::vector<double>> AdjustLogits(absl::Span<const float> logits,
                                                 const SamplingParams& params,
                                                 const TokenHistory& history);

// Whether they look at the text before a row: all but bias does.
bool LooksAtText(const SamplingParams& params);

// What they do to a row, token by token, for those who have not all of it.
// INTERNAL where history or bias names a token that is not below `vocab_size`.
absl::StatusOr<LogitMoves> MovesOf(const SamplingParams& params,
                                   const TokenHistory& history, int vocab_size);
// What they do once `token` has been generated too. `moves` are by these
// parameters.
void AddGenerated(TokenId token, const SamplingParams& params,
                  LogitMoves& moves);
std::vector<TokenId> TokensOf(const LogitMoves& moves);
// What becomes of a logit of that token.
double MovedLogit(const LogitMoves& moves, const MovedToken& token,
                  double logit);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_ADJUST_LOGITS_H_
