// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/session_drafter.h"

#include <utility>

#include "coordinator/pool/node_pool.h"
#include "coordinator/pool/wait_time.h"
#include "core/base/retry_delay.h"

namespace outrider {

SessionDrafter::SessionDrafter(NodePool& pool, const SessionId& session,
                               Seat<DrafterNode> seat)
    : pool_(pool), session_(session), seat_(std::move(seat)) {}

Task<absl::StatusOr<DraftReply>> SessionDrafter::Draft(
    const DraftCall& call, Cancellation& cancellation) {
  using Clock = CircuitBreaker::Clock;
  if (Clock::now() < refused_until_) co_return refusal_;
  was_asked_ = true;
  absl::StatusOr<DraftReply> reply =
      co_await seat_->stub.Draft(call, cancellation);
  if (IsRefusal(reply.status())) {
    refusal_ = reply.status();
    refused_until_ =
        Clock::now() + WaitTime(refusal_, session_, num_refusals_++);
  }
  co_return reply;
}

void SessionDrafter::Release(RequestHeader header) {
  if (was_asked_) pool_.releases().Release(std::move(seat_), std::move(header));
}

}  // namespace outrider
