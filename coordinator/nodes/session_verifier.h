// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_VERIFIER_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_VERIFIER_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/nodes/node.h"
#include "coordinator/nodes/same_model_stub.h"
#include "coordinator/nodes/seated_stub.h"
#include "coordinator/nodes/session_pool.h"
#include "coordinator/nodes/session_use.h"
#include "coordinator/nodes/text_room.h"
#include "coordinator/nodes/verifier_seat.h"
#include "coordinator/nodes/waiting_room.h"
#include "coordinator/peers/node_stub.h"
#include "core/base/cancellation.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/session/cache_delta.h"
#include "core/wire/node_description.h"

namespace outrider {

// One session's verifier, whichever node that is at the time. An opening that a
// node refuses, or fails at, is sent to another that is ready; where all
// refuse, or keep their room for others, it waits in the pool's waiting room.
//
// A session that has begun is moved: away from a node that is lost, late or
// leaving, to another that is ready and has the same model. Whoever calls
// learns of it by a miss, as if the node had forgotten the session, and so
// opens it again with all its tokens and the same drafts, or the first of them
// where the other takes no more; an opening that goes to such a one likewise.
// Where no other is ready, the session holds: it asks its own node again, the
// same step with the same bytes, until that answers or another comes.
//
// A node that is lost may have died of a step, whose session is a suspect until
// one is answered: a node takes in one suspect at a time. If that is lost too,
// the seat may convict the session, and it ends. Confined to one coroutine.
class SessionVerifier final : public VerifyStub {
 public:
  SessionVerifier(SessionPool& pool, const SessionId& session,
                  Seat<VerifierNode> seat, const NodeDescription& description);

  void set_use(const SessionUse& use) { seat_.set_use(use); }  // before Verify

  // IsOutgrown: no verifier has had room for the text for some seconds.
  // RESOURCE_EXHAUSTED with a delay: the waiting room is full. UNAVAILABLE: an
  // opening fails everywhere, or it would be the fourth move in a minute, or
  // its node is well and does not serve it, or all that are left would begin it
  // anew. ABORTED: only other models are. IsPoison: nodes were lost.
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation& cancellation) override;
  int MostDrafts(int text_length) const override {
    return outrider::MostDrafts(seat_.description(), text_length);
  }
  // Tells the node, if it was asked, and does not wait for it. The last use.
  void Release(RequestHeader header) {
    if (at_seat_.was_asked()) seat_.Release(std::move(header));
  }

  const VerifierNode& node() const { return seat_.node(); }

 private:
  using Reply = absl::StatusOr<VerifyReply>;
  using Clock = VerifierSeat::Clock;
  using Nodes = VerifierSeat::Nodes;

  // A step that is asked until it is answered, and what its attempts have met.
  struct Attempts;
  // What follows an attempt that was not answered: another one, the session
  // opened anew at the node where it is now, or the end.
  enum class Next { kAsk, kReopen, kEnd };

  Task<Reply> Answer(const VerifyCall& call, Cancellation& cancellation);
  WaitingRoom::Guest AsGuest(const VerifyCall& call) const;
  Task<Reply> Open(const VerifyCall& call, Cancellation& cancellation);
  Task<Reply> AskEach(const VerifyCall& call, Cancellation& cancellation);
  Task<Reply> AskUntilAnswered(const VerifyCall& call,
                               Cancellation& cancellation);
  // Sets `status` to what the step has failed with, where that is the end.
  Task<Next> Recover(Attempts& attempts, absl::Status& status,
                     Cancellation& cancellation);
  // Goes where there may be room for what was refused, or waits for some.
  Task<Next> WaitForRoom(Attempts& attempts, const absl::Status& refusal,
                         Cancellation& cancellation);
  Next ReopenAfterFailure(const VerifyCall& call, const absl::Status& failure);
  Task<Next> GoElsewhereOrHold(Attempts& attempts, absl::Status& status,
                               Cancellation& cancellation);
  bool IsUnservedForLong(Attempts& attempts, const absl::Status& status);
  // A suspect stays with those who know that it is one, as if it had begun.
  bool is_kept() const { return seat_.has_begun() || seat_.is_suspect(); }
  // Asks its node, twice where the connection broke. UNAVAILABLE: it is lost.
  Task<Reply> AskHere(const VerifyCall& call, Cancellation& cancellation);
  // What a step comes to that is refused for good.
  Task<Reply> ReconsiderRefusal(const VerifyCall& call,
                                const absl::Status& refusal,
                                Cancellation& cancellation);
  absl::Status UnservedError(const absl::Status& status);
  Task<bool> IsThere(Cancellation& cancellation);
  bool Move(const VerifyCall& call, MoveReason reason,
            const absl::Status& why = {});

  SessionPool& pool_;
  const SessionId session_;
  VerifierSeat seat_;
  SeatedStub at_seat_;
  SameModelStub same_model_;
  Nodes failed_, full_;    // at the first opening
  bool was_sent_ = false;  // likewise, to any, the last time
  std::unique_ptr<WaitingRoom::Place> place_;  // likewise, while it waits
  bool has_failed_ = false;  // a step of it, since one was answered
  bool was_there_ = false;   // the node that answered UNAVAILABLE last
  int num_retries_ = 0;      // of the call under way
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_VERIFIER_H_
