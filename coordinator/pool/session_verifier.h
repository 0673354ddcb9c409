// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_SESSION_VERIFIER_H_
#define OUTRIDER_COORDINATOR_POOL_SESSION_VERIFIER_H_

#include <chrono>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/peers/node_stub.h"
#include "coordinator/pool/node.h"
#include "core/base/cancellation.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/session/cache_delta.h"
#include "core/wire/node_description.h"

namespace outrider {

class NodePool;

// One session's verifier. Until the first reply the session may still go
// elsewhere: an opening that a node refuses, or fails at, is sent to another
// that is ready. Where all refuse, it waits in the pool's waiting room. From
// then on the session stays: a refusal is waited for, as long as it takes, and
// over a broken connection the same step is sent again with the same bytes,
// which the node answers without harm. Used by one coroutine at a time.
class SessionVerifier final : public VerifyStub {
 public:
  SessionVerifier(NodePool& pool, const SessionId& session,
                  Seat<VerifierNode> seat, NodeDescription description);

  // RESOURCE_EXHAUSTED with a delay: an opening, and the waiting room is full.
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation& cancellation) override;
  // What the session's node is now.
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation);
  // Tells the node, if it was ever asked, and does not wait for it. Nothing
  // else may follow.
  void Release(RequestHeader header);

  const VerifierNode& node() const { return *seat_; }

 private:
  using Reply = absl::StatusOr<VerifyReply>;
  using Nodes = std::vector<const VerifierNode*>;

  Task<Reply> Open(const VerifyCall& call, Cancellation& cancellation);
  // Asks one after the other, until one does not refuse or fail.
  Task<Reply> AskEach(const VerifyCall& call, Cancellation& cancellation);
  Task<Reply> AskUntilAnswered(const VerifyCall& call,
                               Cancellation& cancellation);
  // Tells the node's breaker how a call has ended.
  void Report(const absl::Status& status, const Cancellation& cancellation);
  // Moves to a node that neither is one of `refusing` nor has failed; to a
  // doubtful one only where `even_doubtful`. False, and no change, without one.
  bool Move(const Nodes& refusing, bool even_doubtful);

  NodePool& pool_;
  const SessionId session_;
  Seat<VerifierNode> seat_;
  const NodeDescription description_;
  bool is_open_ = false;
  uint64_t opening_step_ = 0;  // 0: nothing was asked yet
  Nodes failed_;               // at the opening
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_SESSION_VERIFIER_H_
