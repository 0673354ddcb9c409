// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_AHEAD_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_AHEAD_DRAFT_CLIENT_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/control/draft_length_control.h"
#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/peers/optional_draft_client.h"
#include "coordinator/peers/side_draft.h"
#include "coordinator/round/draft_client.h"
#include "core/wire/schedule.h"

namespace outrider {

// Has the drafter work while the verifier does. As soon as a round's drafts are
// on their way, it asks for drafts after what may come of them: a number that
// stand, and a token after these. Where the verdict is one of those, a hit, the
// next round has its drafts already; else it is drafted in turn.
//
// Exact (docs/algorithm.md): whether to ask, and for how much, is decided from
// past rounds, and what was asked for is waited for as long as it may be a hit.
// It is a hit by the text that it was drafted after, which has to be the
// session's to the last token. A drafter that fails at it again and again is
// left alone with it for a while, whatever it drafts in turn; one that is too
// busy for it has not failed. One object a session; Stop must have been awaited
// before it goes.
class AheadDraftClient final : public DraftClient {
 public:
  AheadDraftClient(OptionalDraftClient& drafter, Schedule schedule)
      : drafter_(drafter), schedule_(schedule) {}

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override;
  void DraftAhead(Session& session, const Draft& in_flight) override;
  void Learn(const RoundStats& round) override {
    drafter_.LearnBeside(round, /*drafts_ahead=*/ahead_.has_value());
  }

  // Ends what still goes on beside the session, at its end.
  Task<void> Stop(Session& session);

 private:
  // What was asked for ahead, and what for.
  struct Ahead {
    OptionalDraftClient::Drafter drafter;
    DraftLengthControl::Choice choice = {};
    std::unique_ptr<SideDraft> call = {};
    CircuitBreaker::Permit permit = {};
  };
  // What has come of it: a draft where it is a hit.
  struct Settled {
    std::optional<Draft> draft = {};
    RoundStats::Link link = {};
    AheadStats stats = {};
  };

  // What a call has come to, for both that look whether more may be made.
  void Ended(const Ahead& ahead, const absl::Status& status);
  void Abandon(const Ahead& ahead);
  // Ends what is under way, for a round of so many drafts: waits for it where
  // it may still be a hit, and gives it up where the text has gone on
  // otherwise.
  Task<Settled> Settle(Session& session, int num_tokens);

  OptionalDraftClient& drafter_;
  const Schedule schedule_;
  int num_tokens_ = 0;          // that the round which runs was to draft
  std::optional<Ahead> ahead_;  // nothing: none is under way
  CircuitBreaker breaker_;      // of these calls alone
  const CircuitBreaker* last_ = nullptr;  // that of who was asked last
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_AHEAD_DRAFT_CLIENT_H_
