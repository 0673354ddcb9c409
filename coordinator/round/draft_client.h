// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_ROUND_DRAFT_CLIENT_H_

#include "absl/status/statusor.h"
#include "coordinator/round/session.h"
#include "core/base/task.h"
#include "core/sampling/draft.h"
#include "core/wire/round_stats.h"

namespace outrider {

// A draft, and what it took.
struct ProposedDraft {
  Draft draft = {};
  RoundStats::Link link = {};
  int num_looked_up = 0;  // of the draft: from the text, not the drafter
  // Why the drafter has no draft; there may be one that was looked up.
  PlainReason plain_reason = PlainReason::kNone;
  AheadStats ahead = {};
};

// Where drafts come from, as the decoder sees it. Whether a round drafts, and
// how much, may depend on the committed text and on past rounds: on this
// round's own drafts it may not, or the output's law changes.
class DraftClient {
 public:
  virtual ~DraftClient() = default;
  // Asks for up to `num_tokens` drafts of what follows the session's text; 0
  // lets the drafter take that text in and asks for nothing.
  virtual Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                                      int num_tokens) = 0;
  // What may follow these drafts may be drafted now, while a verifier works on
  // them. They were proposed in the round that runs, if there are any.
  virtual void DraftAhead(Session& session, const Draft& in_flight) = 0;
  // Is told, after each round that has committed, what it cost and gained.
  virtual void Learn(const RoundStats& round) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_DRAFT_CLIENT_H_
