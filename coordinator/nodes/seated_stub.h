// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SEATED_STUB_H_
#define OUTRIDER_COORDINATOR_NODES_SEATED_STUB_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/nodes/session_pool.h"
#include "coordinator/nodes/verifier_seat.h"
#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/peers/node_stub.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/wire/node_calls.h"

namespace outrider {

// The verifier that a session is at, as a stub: each call goes to the node of
// the moment, has the time that such a step may take there, and tells the
// node's breaker what came of it. Confined to one coroutine.
class SeatedStub final : public VerifyStub {
 public:
  // Both must outlive it.
  SeatedStub(SessionPool& pool, VerifierSeat& seat)
      : pool_(pool), seat_(seat) {}

  // Whether the breaker of the node lets an opening in, or takes it for its
  // probe. The next call tells it how that went.
  bool MayOpen() {
    permit_ = seat_.node().breaker.Allow(CircuitBreaker::Clock::now());
    return static_cast<bool>(permit_);
  }
  // DEADLINE_EXCEEDED, beside the node's own failures: it is late, or silent.
  // Each late step gives the next one more time.
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation& cancellation) override;
  // The session has moved, and waits for its new node no longer than others.
  void ForgetPatience() { patience_ = 1; }

  bool was_asked() const { return was_asked_; }  // any node, answered or not
  // These tell of the last call. The node was connected when it was made.
  bool was_connected() const { return was_connected_; }
  // The step had all the time that there is for such a one.
  bool was_patient() const { return was_patient_; }
  // The node fell silent under a session that has begun, and is to be left.
  bool was_silent() const { return was_silent_; }

 private:
  void Report(const absl::Status& status, const Cancellation& cancellation);

  SessionPool& pool_;
  VerifierSeat& seat_;
  CircuitBreaker::Permit permit_;  // of the next call
  int patience_ = 1;  // times the limit of a step; more after a late one
  bool was_asked_ = false;
  bool was_connected_ = false;
  bool was_patient_ = false;
  bool was_silent_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SEATED_STUB_H_
