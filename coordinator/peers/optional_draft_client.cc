// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/optional_draft_client.h"

#include "core/base/log.h"

namespace outrider {

Task<absl::StatusOr<ProposedDraft>> OptionalDraftClient::Propose(
    Session& session, int num_tokens) {
  ProposedDraft no_draft = {.draft = Draft::None(session.length())};
  if (drafter_ == nullptr) co_return no_draft;
  if (!breaker_.Allow(CircuitBreaker::Clock::now())) {
    no_draft.link.num_failures = 1;
    co_return no_draft;
  }
  const Stopwatch watch;
  absl::StatusOr<ProposedDraft> draft =
      co_await drafter_->Propose(session, num_tokens);
  if (session.cancellation().cancelled()) {
    // Says nothing about the drafter's health.
    breaker_.Abandon();
    co_return draft;
  }
  if (draft.ok()) {
    breaker_.Success();
    co_return draft;
  }
  no_draft.link = {
      .call_seconds = watch.seconds(), .num_messages = 1, .num_failures = 1};
  if (breaker_.Failure(CircuitBreaker::Clock::now())) {
    OUTRIDER_LOG(kWarning) << "drafting failed, going on without: "
                           << draft.status();
  }
  co_return no_draft;
}

}  // namespace outrider
