// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_SESSION_DRAFTER_H_
#define OUTRIDER_COORDINATOR_POOL_SESSION_DRAFTER_H_

#include "absl/status/statusor.h"
#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/peers/draft_pace.h"
#include "coordinator/peers/node_stub.h"
#include "coordinator/pool/node.h"
#include "core/base/cancellation.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/sampling/rule_kind.h"
#include "core/session/cache_delta.h"

namespace outrider {

class NodePool;

// One session's drafter. After a refusal it is not asked again before the time
// that it gave: until then the session's drafts are refused here. It carries
// one call at a time.
class SessionDrafter final : public DraftStub {
 public:
  SessionDrafter(NodePool& pool, const SessionId& session,
                 Seat<DrafterNode> seat);

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override;
  // Tells the node, if it was ever asked, and does not wait for it. Nothing
  // else may follow.
  void Release(RequestHeader header);

  CircuitBreaker& breaker() { return seat_->breaker; }
  DraftPace& pace(RuleKind rule, bool is_greedy) {
    return seat_->paces.Of(rule, is_greedy);
  }
  const DrafterNode& node() const { return *seat_; }

 private:
  NodePool& pool_;
  const SessionId session_;
  Seat<DrafterNode> seat_;
  bool was_asked_ = false;
  absl::Status refusal_;
  CircuitBreaker::Clock::time_point refused_until_ = {};
  uint64_t num_refusals_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_SESSION_DRAFTER_H_
