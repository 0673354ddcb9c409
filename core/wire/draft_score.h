// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_DRAFT_SCORE_H_
#define OUTRIDER_CORE_WIRE_DRAFT_SCORE_H_

#include <optional>
#include <variant>
#include <vector>

#include "core/base/token.h"
#include "core/model/logit_rows.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/target_row.h"
#include "core/sampling/token_logprobs.h"

namespace outrider {

// The tokens that one row may give to the text, with their scores.
struct ScoredRow {
  TokenSeq tokens = {};
  RowScores scores = {};  // scores.tokens has one for each
};

// What the target says to a draft.
struct DraftScore {
  // One more than the draft has tokens; they may refer to the session's coins.
  std::vector<TargetRow> rows = {};
  // Stands in place of the rows where the verifier has judged already, by the
  // same rule and coins.
  std::optional<Verdict> verdict = {};
  // Plain decoding that follows it: tokens that the verifier went on with.
  std::vector<TokenId> more_tokens = {};
  // What log-probabilities are found in: the target's own rows, or the scores
  // that the verifier took from them, where it was asked for them.
  std::variant<std::vector<ScoredRow>, LogitRows> scored = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_DRAFT_SCORE_H_
