// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_OPTIONAL_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_OPTIONAL_DRAFT_CLIENT_H_

#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/round/draft_client.h"

namespace outrider {

// Makes drafting optional: a draft that fails becomes one of length 0, and the
// round is plain decoding. A drafter that fails again and again is left alone
// for a while. Every failure is counted in the round's statistics, and the
// first of a row is logged. Never fails itself, but when cancelled.
class OptionalDraftClient final : public DraftClient {
 public:
  // `drafter` may be null: none is configured, or none fits.
  OptionalDraftClient(DraftClient* drafter, CircuitBreaker& breaker)
      : drafter_(drafter), breaker_(breaker) {}

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override;

 private:
  DraftClient* const drafter_;
  CircuitBreaker& breaker_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_OPTIONAL_DRAFT_CLIENT_H_
