// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_SESSION_VERIFIER_H_
#define OUTRIDER_COORDINATOR_POOL_SESSION_VERIFIER_H_

#include <chrono>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/peers/node_stub.h"
#include "coordinator/pool/move_gate.h"
#include "coordinator/pool/move_limit.h"
#include "coordinator/pool/node.h"
#include "coordinator/pool/node_group.h"
#include "coordinator/pool/same_model_stub.h"
#include "coordinator/pool/session_moves.h"
#include "core/base/cancellation.h"
#include "core/base/log.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/session/cache_delta.h"
#include "core/wire/node_description.h"

namespace outrider {

class NodePool;

// One session's verifier, whichever node that is at the time.
//
// An opening that a node refuses, or fails at, is sent to another that is
// ready; where all refuse, it waits in the pool's waiting room.
//
// A session that has begun is moved: away from a node that is lost, late or
// leaving, to another that is ready and has the same model. Whoever calls
// learns of it by a miss, as if the node had forgotten the session, and so
// opens it again with all its tokens and the same drafts. Where no other is
// ready, the session holds: it asks its own node again, the same step with the
// same bytes, until that answers or another comes. Confined to one coroutine.
class SessionVerifier final : public VerifyStub {
 public:
  SessionVerifier(NodePool& pool, const SessionId& session,
                  Seat<VerifierNode> seat, NodeDescription description);

  // RESOURCE_EXHAUSTED with a delay: an opening, and the waiting room is full.
  // UNAVAILABLE: an opening fails everywhere, or the session would move for the
  // fourth time in a minute. ABORTED: only other models are left.
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation& cancellation) override;
  // Tells the node, if it was ever asked, and does not wait for it. Nothing
  // else may follow.
  void Release(RequestHeader header);

  const VerifierNode& node() const { return *seat_; }

 private:
  using Reply = absl::StatusOr<VerifyReply>;
  using Nodes = std::vector<const VerifierNode*>;
  using Clock = std::chrono::steady_clock;

  // The node of the moment, as a stub.
  class AtSeat final : public VerifyStub {
   public:
    explicit AtSeat(SessionVerifier& session) : session_(session) {}
    Task<Reply> Verify(const VerifyCall& call,
                       Cancellation& cancellation) override {
      return session_.AskNode(call, cancellation);
    }

   private:
    SessionVerifier& session_;
  };

  Task<Reply> Open(const VerifyCall& call, Cancellation& cancellation);
  Task<Reply> AskEach(const VerifyCall& call, Cancellation& cancellation);
  Task<Reply> AskUntilAnswered(const VerifyCall& call,
                               Cancellation& cancellation);
  // One call to the node of the moment: in its time, counted and reported.
  Task<Reply> AskNode(const VerifyCall& call, Cancellation& cancellation);
  void Report(const absl::Status& status, const Cancellation& cancellation);

  // Goes to another node with an opening that no node has answered: one that
  // neither is one of `refusing` nor has failed, a doubtful one only where
  // `even_doubtful`. Yields the seat that was left; null, and no change,
  // without another.
  Seat<VerifierNode> TakeOther(const Nodes& refusing, bool even_doubtful);
  // Goes to another node with a session that has begun. False, and no change,
  // where none is there or it may not.
  bool Move(const VerifyCall& call, MoveReason reason,
            const absl::Status& why = {});
  // With the same kernels, where the session's very text is promised, unless no
  // node is left that has them.
  NodeGroup<VerifierNode>::Choice ChooseOther(Sameness sameness);
  bool IsAlike(const NodeDescription& node, Sameness sameness) const;
  // Whether verifiers are ready, and none is of the session's model.
  bool IsModelGone();
  // Waits until the node lets the moved session in, or one like it does.
  Task<void> TakeTurn(const VerifyCall& call, Cancellation& cancellation);
  bool TakeTurnElsewhere(const VerifyCall& call, Clock::time_point now);
  void Arrived(const VerifyReply& reply);
  void Leave(Seat<VerifierNode> seat, const VerifyCall& call);
  LogFields FieldsOf(const VerifyCall& call) const;

  NodePool& pool_;
  const SessionId session_;
  Seat<VerifierNode> seat_;
  const NodeDescription description_;
  AtSeat at_seat_{*this};
  SameModelStub same_model_;
  bool has_begun_ = false;     // a verifier has answered
  uint64_t opening_step_ = 0;  // 0: nothing was asked yet
  Nodes failed_;               // at the first opening
  MoveLimit moves_;
  bool is_moved_ = false;  // and not open at the new node yet
  MoveGate::Turn turn_;    // of the moved session
  int patience_ = 1;       // times the limit of a step; more after a late one
  bool was_patient_ = false;  // the last step had all the time there is
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_SESSION_VERIFIER_H_
