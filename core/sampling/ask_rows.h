// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_ASK_ROWS_H_
#define OUTRIDER_CORE_SAMPLING_ASK_ROWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/logit_moves.h"
#include "core/base/row_question.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/score_draft.h"
#include "core/sampling/token_history.h"

namespace outrider {

// Whether rows are drawn from with weights of all tokens: those that are cut
// nowhere. Of the others the greatest logits are told.
bool IsDrawn(const SamplingParams& params);

// What a model may answer in place of a block's rows, one question for each:
// ScoreDraft makes of the answers what it makes of the rows. So does
// ScoreTokens, where the block has log-probabilities: of a drawn row for the
// token that is drawn and the support, of another one for what it is cut to.
// Rows that are cut nowhere are drawn from with the coins of `seed`; without
// one they come whole. `params`, and what the block looks at, must outlive the
// result.
std::vector<RowQuestion> AskRows(const DraftBlock& block,
                                 const SamplingParams& params,
                                 std::optional<uint64_t> seed, int vocab_size);

// Asks for what ProcessTop makes a distribution of, which stands in the answer
// then (TopAnswer::row); for the whole row where no answer could decide, or
// where too many tokens are moved. `params` must outlive the result.
RowQuestion AskTop(const SamplingParams& params, LogitMoves moves,
                   int vocab_size);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_ASK_ROWS_H_
