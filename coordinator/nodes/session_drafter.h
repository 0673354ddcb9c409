// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_DRAFTER_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_DRAFTER_H_

#include <chrono>
#include <optional>

#include "absl/status/statusor.h"
#include "coordinator/nodes/node.h"
#include "coordinator/nodes/node_group.h"
#include "coordinator/nodes/session_moves.h"
#include "coordinator/nodes/session_pool.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/node_stub.h"
#include "coordinator/peers/optional_draft_client.h"
#include "coordinator/round/session.h"
#include "core/base/cancellation.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/sampling/draft_options.h"
#include "core/session/cache_delta.h"
#include "core/wire/schedule.h"

namespace outrider {

// One session's drafter, whichever node that is at the time, if there is one.
// Between two rounds a session leaves a node that is lost, drains or was
// replaced, where another is ready, and one that has none takes the first that
// comes: what it drafts is judged all the same. After a refusal the node is not
// asked again before the time that it gave: until then the session's drafts are
// refused here; where it refused to draft ahead, that alone is. One under whose
// calls two drafters were lost, with no answer in between, drafts no more, so
// that it takes no third: at the second it had few such sessions beside it
// (SuspectPlaces). It carries one call at a time.
class SessionDrafter final : public DraftStub {
 public:
  // No seat: no drafter is ready yet.
  SessionDrafter(SessionPool& pool, const SessionId& session,
                 NodeGroup<DrafterNode>::Choice choice);

  // Who drafts in the round that begins. No call may be under way.
  std::optional<OptionalDraftClient::Drafter> Choose(
      Session& session, const DraftOptions& drafting, Schedule schedule);
  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override;
  // Tells the node, if it was ever asked, and does not wait for it. Nothing
  // else may follow.
  void Release(RequestHeader header);

  bool has_node() const { return seat_ != nullptr; }
  const DrafterNode& node() const { return *seat_; }

 private:
  using Clock = CircuitBreaker::Clock;

  static constexpr int kMaxLost = 2;

  struct Refusal {
    absl::Status status;
    Clock::time_point until = {};
    int num = 0;  // in a row
  };

  // Why the session should have another node, if so.
  std::optional<MoveReason> ReasonToMove() const;
  // Whether it may go on at this one, which says so of itself.
  bool MayGoOnAt(const DrafterNode& node, const NodeDescription& answer,
                 MoveReason reason) const;
  // One call, for as long as the node answers anything.
  Task<absl::StatusOr<DraftReply>> Ask(const DraftCall& call,
                                       Cancellation& cancellation);
  // What came of a call to a drafter that was connected, where it was.
  void Count(const DraftCall& call, const absl::StatusOr<DraftReply>& reply,
             bool was_connected);
  void Move(Session& session, MoveReason reason,
            NodeGroup<DrafterNode>::Choice choice);

  SessionPool& pool_;
  const SessionId session_;
  Seat<DrafterNode> seat_;
  NodeDescription description_;
  std::optional<NodeDraftClient> client_;
  DraftLengthControl* control_ = nullptr;  // the node's, where it has a client
  Clock::time_point next_look_ = {};
  bool has_failed_ = false;  // at its last call
  bool is_other_ = false;    // than it was chosen as: it was replaced
  // It called its last call invalid: it may take less than is known of it.
  bool is_in_doubt_ = false;
  bool was_asked_ = false;
  int num_lost_ = 0;       // drafters under its calls, since one has answered
  Refusal refusal_;        // of any drafts
  Refusal ahead_refusal_;  // of those for drafts in flight
  uint64_t num_refusals_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_DRAFTER_H_
