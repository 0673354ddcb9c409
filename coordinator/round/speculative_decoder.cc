// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/speculative_decoder.h"

#include <algorithm>
#include <vector>

#include "coordinator/round/stopwatch.h"
#include "core/base/status_macros.h"

namespace outrider {

Task<absl::StatusOr<RoundResult>> SpeculativeDecoder::Round(Session& session) {
  const Stopwatch watch;
  const int k = std::min(peers_.policy.NextDraftLength(session),
                         peers_.verifier.MostDrafts(session));

  // Draw K guesses from the draft model.
  ProposedDraft proposed = {.draft = Draft::None(session.length())};
  if (k > 0) {
    OUTRIDER_CO_ASSIGN_OR_RETURN(proposed,
                                 co_await peers_.drafter.Propose(session, k));
  }

  // What may follow them is drafted while the target works.
  peers_.drafter.DraftAhead(session, proposed.draft);

  // Score them with the target model: K + 1 rows in one pass.
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      const ScoredDraft scored,
      co_await peers_.verifier.Score(session, proposed.draft));

  // Keep the prefix the target agrees with, and one token of the target's own.
  const Draft& draft = proposed.draft;
  const Verdict verdict = Judge(draft, scored.score, session);
  RoundResult result = {.verdict = verdict};
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      result.logprobs, LogprobsOf(scored.score, draft, verdict, session));

  // Where nothing was drafted the target may have decoded plainly for a while.
  const std::vector<TokenId>& more = scored.score.more_tokens;
  session.Commit(draft, verdict, more);  // both mirrors know how far to cut
  result.stats = {.num_drafted = draft.length(),
                  .num_accepted = verdict.num_accepted,
                  .num_more = static_cast<int>(more.size()),
                  .next_run = scored.next_run,
                  .num_looked_up = proposed.num_looked_up,
                  .confidences = draft.confidences,
                  .plain_reason = proposed.plain_reason,
                  .lost_residual = verdict.lost_residual,
                  .ahead = proposed.ahead,
                  .round_seconds = watch.seconds(),
                  .drafter = proposed.link,
                  .verifier = scored.link};
  peers_.drafter.Learn(result.stats);
  co_return result;
}

Verdict SpeculativeDecoder::Judge(const Draft& draft, const DraftScore& score,
                                  Session& session) const {
  if (score.verdict.has_value()) return *score.verdict;
  return peers_.rule.Judge(draft, score.rows, session.coins());
}

}  // namespace outrider
