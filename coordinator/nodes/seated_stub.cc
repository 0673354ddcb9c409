// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/seated_stub.h"

#include <optional>
#include <utility>

#include "coordinator/nodes/node.h"
#include "coordinator/nodes/step_failure.h"
#include "coordinator/nodes/timed_step.h"
#include "core/base/log.h"

namespace outrider {

Task<absl::StatusOr<VerifyReply>> SeatedStub::Verify(
    const VerifyCall& call, Cancellation& cancellation) {
  VerifierNode& node = seat_.node();
  was_asked_ = true;
  was_connected_ = node.link.is_connected();
  const bool may_move = seat_.may_move();
  std::optional<VerifyCall> moved;
  if (seat_.is_moved()) {
    moved = call;
    moved->header.is_moved = true;
  }
  TimedReply timed =
      co_await SendStep(node, moved.has_value() ? *moved : call,
                        {.may_go_elsewhere = may_move && node.link.has_other,
                         .may_move = may_move,
                         .times = patience_},
                        pool_.timer(), cancellation);
  absl::StatusOr<VerifyReply>& reply = timed.reply;
  was_patient_ = timed.had_all_time;
  // Such a node is not slow: patience with it would keep a session from another
  // one that is ready again. (An opening goes to any other at once.)
  was_silent_ = timed.is_silent && seat_.has_begun();
  if (!absl::IsDeadlineExceeded(reply.status())) {
    patience_ = 1;
  } else if (!was_patient_ && !was_silent_) {
    patience_ *= 4;
  }
  if (reply.ok() && reply->header.is_draining) node.link.is_leaving = true;
  Report(reply.status(), cancellation);
  co_return std::move(reply);
}

void SeatedStub::Report(const absl::Status& status,
                        const Cancellation& cancellation) {
  CircuitBreaker& breaker = seat_.node().breaker;
  const CircuitBreaker::Permit permit = std::exchange(permit_, {});
  if (status.ok()) {
    breaker.Success();
  } else if (cancellation.cancelled() || !IsOfNode(status)) {
    breaker.Abandon(permit);
  } else if (breaker.Failure(CircuitBreaker::Clock::now(), permit)) {
    OUTRIDER_LOG(kWarning) << seat_.node().link.address << " fails: " << status;
  }
}

}  // namespace outrider
