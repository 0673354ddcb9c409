// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/speculative_decoder.h"

#include "core/base/status_macros.h"
#include "core/base/when_both.h"

namespace outrider {

Task<absl::StatusOr<RoundResult>> SpeculativeDecoder::Round(Session& session) {
  const int k = peers_.policy.NextDraftLength(session);
  co_return co_await RoundOf(session, k);
}

Task<absl::StatusOr<RoundResult>> SpeculativeDecoder::RoundOf(Session& session,
                                                              int k) {
  const Stopwatch watch;

  // Draw K guesses from the draft model.
  ProposedDraft proposed = {.draft = Draft::None(session.length())};
  if (k > 0) {
    OUTRIDER_CO_ASSIGN_OR_RETURN(proposed,
                                 co_await peers_.drafter.Propose(session, k));
  }

  // Score them with the target model: K + 1 rows in one pass.
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      const ScoredDraft scored,
      co_await peers_.verifier.Score(session, proposed.draft));

  co_return Conclude(proposed, scored, watch, session);
}

Task<absl::StatusOr<RoundResult>> SpeculativeDecoder::FirstRound(
    Session& session) {
  const int k = peers_.policy.NextDraftLength(session);
  if (k == 0) co_return co_await RoundOf(session, k);
  const Stopwatch watch;
  const Draft no_draft = Draft::None(session.length());
  auto [prefill, scored] =
      co_await WhenBoth(peers_.drafter.Propose(session, /*num_tokens=*/0),
                        peers_.verifier.Score(session, no_draft));
  OUTRIDER_CO_RETURN_IF_ERROR(prefill.status());
  OUTRIDER_CO_RETURN_IF_ERROR(scored.status());
  co_return Conclude(*prefill, *scored, watch, session);
}

absl::StatusOr<RoundResult> SpeculativeDecoder::Conclude(
    const ProposedDraft& proposed, const ScoredDraft& scored,
    const Stopwatch& watch, Session& session) const {
  const Draft& draft = proposed.draft;

  // Keep the prefix the target agrees with, and one token of the target's own.
  const Verdict verdict = Judge(draft, scored.score, session);

  RoundResult result = {.verdict = verdict};
  OUTRIDER_ASSIGN_OR_RETURN(result.logprobs,
                            LogprobsOf(scored.score, draft, verdict, session));
  session.Commit(draft, verdict);  // both mirrors now know how far to cut
  result.stats = {.num_drafted = draft.length(),
                  .num_accepted = verdict.num_accepted,
                  .num_looked_up = proposed.num_looked_up,
                  .round_seconds = watch.seconds(),
                  .drafter = proposed.link,
                  .verifier = scored.link};
  return result;
}

Verdict SpeculativeDecoder::Judge(const Draft& draft, const DraftScore& score,
                                  Session& session) const {
  if (score.verdict.has_value()) return *score.verdict;
  return peers_.rule.Judge(draft, score.rows, session.coins());
}

}  // namespace outrider
