// SPDX-License-Identifier: Apache-2.0
#include "drafter/draft_pass.h"

#include <variant>

#include "absl/types/span.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/base/token.h"

namespace outrider {
namespace {

// Whether a model may go on by itself after the row that is asked about.
bool MayGoOnAfter(const RowQuestion& question) {
  const auto* top = std::get_if<TopQuestion>(&question.what);
  return top != nullptr && top->next.has_value();
}

}  // namespace

DraftPass NextPass(const DraftInProgress& drafting, int max_draft_tokens) {
  DraftPass pass = {.num_rows = drafting.num_rows(),
                    .question = drafting.question()};
  if (MayGoOnAfter(pass.question)) {
    pass.max_drawn = max_draft_tokens - drafting.draft().length() - 1;
  }
  return pass;
}

absl::StatusOr<AfterPass> TakePass(DraftInProgress& drafting,
                                   const LogitRows& rows) {
  const Draft& draft = drafting.draft();
  const absl::Span<const TokenId> guesses = rows.drawn();
  for (int i = 0; i <= static_cast<int>(guesses.size()); ++i) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const bool goes_on,
        drafting.Take(guesses.empty() ? rows
                                      : rows.Only(OUTRIDER_MUTANT(G3, i, 0))));
    if (!goes_on) return AfterPass::kComplete;
    // The next row is that of this token, if the model guessed it.
    if (i < static_cast<int>(guesses.size()) &&
        OUTRIDER_MUTANT(G1, guesses[i] != draft.tokens.back(), false)) {
      return AfterPass::kCutFirst;
    }
  }
  return AfterPass::kGoesOn;
}

}  // namespace outrider
