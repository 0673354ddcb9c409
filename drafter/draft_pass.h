// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_DRAFT_PASS_H_
#define OUTRIDER_DRAFTER_DRAFT_PASS_H_

#include "absl/status/statusor.h"
#include "core/base/row_question.h"
#include "core/drafting/draft_strategy.h"
#include "core/model/logit_rows.h"

namespace outrider {

// What a draft wants of its next pass of the model.
struct DraftPass {
  int num_rows = 0;           // 0 or 1
  RowQuestion question = {};  // about that row
  // Tokens that the model may go on with by itself, so that the rows of more
  // draft tokens come of one pass.
  int max_drawn = 0;
};
// The question is valid until the pass is taken.
DraftPass NextPass(const DraftInProgress& drafting, int max_draft_tokens);

enum class AfterPass {
  kComplete,  // the draft has no token more
  kGoesOn,    // its last token is to be run
  kCutFirst,  // so it is, in place of those that the model went on with
};
// Gives a draft the rows of its pass, for as long as the tokens that the model
// went on with are those that the draft draws from them.
absl::StatusOr<AfterPass> TakePass(DraftInProgress& drafting,
                                   const LogitRows& rows);

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_DRAFT_PASS_H_
