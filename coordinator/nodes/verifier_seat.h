// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_VERIFIER_SEAT_H_
#define OUTRIDER_COORDINATOR_NODES_VERIFIER_SEAT_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/nodes/move_gate.h"
#include "coordinator/nodes/move_limit.h"
#include "coordinator/nodes/node.h"
#include "coordinator/nodes/session_moves.h"
#include "coordinator/nodes/session_pool.h"
#include "coordinator/nodes/session_suspicion.h"
#include "coordinator/nodes/session_use.h"
#include "core/base/cancellation.h"
#include "core/base/log.h"
#include "core/base/monotonic_clock.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/session/cache_delta.h"
#include "core/wire/node_calls.h"
#include "core/wire/node_description.h"

namespace outrider {

// Where a session is: the verifier of the moment, and the turn that it takes to
// come in there. Confined to one coroutine.
class VerifierSeat {
 public:
  using Clock = MonotonicClock;
  using Nodes = std::vector<const VerifierNode*>;

  VerifierSeat(SessionPool& pool, const SessionId& session,
               Seat<VerifierNode> seat, const NodeDescription& description);

  VerifierNode& node() const { return *seat_; }
  // The model is that which the session began with, but for its kernels.
  const NodeDescription& description() const { return description_; }
  // The node is this by now, and still of that model.
  void Correct(const NodeDescription& said) { description_ = said; }
  void set_use(const SessionUse& use) { use_ = use; }
  const SessionUse& use() const { return use_; }
  // Whether a verifier has answered the session, with more than a miss.
  bool has_begun() const { return has_begun_; }
  void set_begun() { has_begun_ = true; }
  bool may_move() const { return !moves_.IsReached(Clock::now()); }

  // Goes to another node with an opening that no node has answered: to none of
  // those `avoided`, to a doubtful one only where `even_doubtful`. Yields the
  // seat that was left; null, and no change, without another.
  Seat<VerifierNode> TakeOther(const VerifyCall& call, const Nodes& avoided,
                               bool even_doubtful);
  // Moves a session that has begun, is resumed or is a suspect. False where it
  // cannot or may not: it stays.
  bool Move(const VerifyCall& call, MoveReason reason,
            const absl::Status& why = {});
  bool MayReopen();  // where it is, as a step failed: it is one of its moves
  // Goes where there may be room for a step that the nodes of `full` have
  // refused. It sends the whole text, and so costs another node the same.
  bool TakeRoomElsewhere(const VerifyCall& call, const Nodes& full);
  // Whether verifiers are ready, and none can go on with the session; or none
  // is of its model, so that no other session may continue its text either.
  bool IsUnserved(const VerifyCall& call);
  bool IsModelGone();

  // Waits until the node lets the session in, where it has to: one that has
  // moved also takes the turn of any other node like it, and one that is
  // suspected is the only such one there.
  Task<void> TakeTurn(const VerifyCall& call, Cancellation& cancellation);
  void GiveTurnBack() { turn_ = {}; }
  void Answered(const VerifyReply& reply);
  bool is_moved() const { return is_moved_; }
  bool is_suspect() const { return suspicion_.is_suspect(); }
  // The verifier was lost under it. Whether the session is given up for that
  // (SessionSuspicion).
  Task<bool> IsConvictedByLoss(Cancellation& cancellation) {
    GiveTurnBack();
    return suspicion_.IsConvictedByLoss(*seat_, cancellation);
  }

  // Tells a node that was left, and does not wait for it.
  void Leave(Seat<VerifierNode> seat, const VerifyCall& call);
  void Release(RequestHeader header);  // the last use of this object
  LogFields FieldsOf(const VerifyCall& call) const;

 private:
  // Where the session's very text is promised, a node with the same kernels,
  // unless none is left that has them; and of those one that takes as many
  // drafts as a round may have, if there is one.
  NodeGroup<VerifierNode>::Choice ChooseOther(const VerifyCall& call);
  // Whether the node can go on with the text, maybe with fewer drafts.
  bool Fits(const NodeDescription& node, const VerifyCall& call,
            Sameness sameness) const;
  Seat<VerifierNode> Take(NodeGroup<VerifierNode>::Choice choice);
  bool TakeTurnElsewhere(const VerifyCall& call,
                         std::optional<MoveGate::Place>& place);
  void EndKnown();

  SessionPool& pool_;
  const SessionId session_;
  Seat<VerifierNode> seat_;
  const NodeDescription first_;  // the description of the first node
  NodeDescription description_;  // of the seat's
  SessionUse use_;
  bool has_begun_ = false;
  MoveLimit moves_, moves_for_room_;
  // Where it had no room and nothing cached: it stays known there by this name,
  // and keeps its age, until another node has taken it in.
  Seat<VerifierNode> known_at_;
  RequestHeader known_as_;
  bool is_moved_ = false;                    // and not open at the new node yet
  const VerifierNode* failed_at_ = nullptr;  // it moved as that failed
  SessionSuspicion suspicion_;
  MoveGate::Turn turn_;  // must end before the gate of its node does
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_VERIFIER_SEAT_H_
