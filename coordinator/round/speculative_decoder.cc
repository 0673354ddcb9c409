// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/speculative_decoder.h"

#include <utility>
#include <vector>

#include "core/base/status_macros.h"

namespace outrider {

Task<absl::StatusOr<Verdict>> SpeculativeDecoder::Round(Session& session) {
  session.BeginRound();
  const ScopedTimer timer(session.stats().round_seconds);
  const int k = peers_.policy.NextDraftLength(session);

  // Draw K guesses from the draft model.
  Draft draft = Draft::None(session.length());
  if (k > 0) {
    OUTRIDER_CO_ASSIGN_OR_RETURN(draft,
                                 co_await peers_.drafter.Propose(session, k));
  }

  // Score them with the target model: K + 1 rows in one pass.
  OUTRIDER_CO_ASSIGN_OR_RETURN(const DraftScore score,
                               co_await peers_.verifier.Score(session, draft));

  // Keep the prefix the target agrees with, and one token of the target's own.
  const Verdict verdict = Judge(draft, score, session);

  session.Commit(draft, verdict);  // both mirrors now know how far to cut
  peers_.drafter.Learn(session.stats());
  co_return verdict;
}

Verdict SpeculativeDecoder::Judge(const Draft& draft, const DraftScore& score,
                                  Session& session) const {
  if (score.verdict.has_value()) return *score.verdict;
  return peers_.rule.Judge(draft, score.rows, session.coins());
}

}  // namespace outrider
