// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_SUSPICION_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_SUSPICION_H_

#include <vector>

#include "coordinator/nodes/node.h"
#include "coordinator/nodes/session_pool.h"
#include "coordinator/nodes/verifier_losses.h"
#include "core/base/cancellation.h"
#include "core/base/monotonic_clock.h"
#include "core/base/session_id.h"
#include "core/base/task.h"

namespace outrider {

// Whether a session takes verifiers down. One under whose step a verifier was
// lost is a suspect until a step of it is answered. A verifier takes in one
// suspect at a time, so that its loss tells which session caused it. Confined
// to one coroutine.
class SessionSuspicion {
 public:
  using Clock = MonotonicClock;
  // So many verifiers lost under its steps, with no answer in between, convict
  // a session; where others are lost too, which had no step of it, one more.
  static constexpr int kMaxLost = 2;

  // The pool must outlive it.
  SessionSuspicion(SessionPool& pool, const SessionId& session)
      : pool_(pool), session_(session) {}

  bool is_suspect() const { return num_lost_ > 0; }
  // Whether the suspect may come to this verifier: no other one is there,
  // whosever it is.
  Task<bool> Isolate(VerifierNode& node, Cancellation& cancellation);
  // The session is at another verifier now, which has not been asked yet.
  void NodeIsAnother() { num_unanswered_ = 0; }
  // A step was computed: what it was suspected of was not its doing.
  void Answered();
  // This verifier was lost under it. Whether the session is given up for that;
  // waits a moment for what else may be lost, where that decides.
  Task<bool> IsConvictedByLoss(const VerifierNode& node,
                               Cancellation& cancellation);

 private:
  SessionPool& pool_;
  const SessionId session_;
  int num_lost_ = 0;  // under its step, since its last answer
  std::vector<VerifierLosses::Id> losses_;  // likewise, and not alone there
  bool is_alone_ = false;                   // of all suspects, at the node
  int num_unanswered_ = 0;  // questions for that, one after the other
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_SUSPICION_H_
