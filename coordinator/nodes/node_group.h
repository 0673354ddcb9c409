// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_NODE_GROUP_H_
#define OUTRIDER_COORDINATOR_NODES_NODE_GROUP_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/nodes/node.h"
#include "coordinator/nodes/node_choice.h"
#include "coordinator/nodes/node_knowledge.h"
#include "core/base/monotonic_clock.h"
#include "core/base/session_id.h"
#include "core/wire/model_identity.h"

namespace outrider {

// The nodes of one role: those that its names have, and those that they had and
// that somebody still uses. NodeType is DrafterNode or VerifierNode. Thread-
// compatible: the pool's lock guards it, while the nodes are used without.
template <typename NodeType>
class NodeGroup {
 public:
  using Clock = MonotonicClock;
  // Makes the node at `address`, which `name` resolved to.
  using Make = std::function<std::unique_ptr<NodeType>(
      const std::string& name, const std::string& address)>;

  NodeGroup(std::vector<std::string> names, Make make)
      : names_(std::move(names)), make_(std::move(make)) {}

  // What `name` has now, if it is one of this group. A node that it no longer
  // has gets no new sessions. A name that has nothing any more says nothing of
  // its nodes: they stay for as long as they answer.
  void SetAddresses(const std::string& name,
                    const std::vector<std::string>& addresses);
  // Ends the nodes that no name has and nobody uses.
  void DropUnused();

  // Those to be asked what they are: each not again before Learn has its
  // answer. One that is late for once is busy: what it said before still holds,
  // but sessions go elsewhere first.
  std::vector<NodeType*> TakeToAsk();
  void Learn(const NodeType& node, absl::StatusOr<NodeDescription> answer);
  // The node has answered a call as this model. True: it was known as another
  // one, and is not ready before its next answer.
  bool Doubt(const NodeType& node, const ModelIdentity& model);
  // The node has said what it is now, and was not asked for the group: what it
  // answered before holds no longer.
  void Correct(const NodeType& node, const NodeDescription& said);
  struct Heard {
    bool is_any_quiet = false;
    Clock::time_point last = {};
  };
  Heard Listen() const;  // what has been heard of the nodes
  // Ends the calls that wait for a node which is silent. While one is quiet, in
  // this group or the other one, yields all that were not heard of late, and
  // always those that are gone, to be asked like the others. Every kLookPeriod.
  std::vector<NodeType*> TakeQuiet(bool is_other_quiet = false,
                                   Clock::time_point other_heard_at = {});
  static constexpr std::chrono::milliseconds kLookPeriod{50};
  static constexpr std::chrono::milliseconds kGonePeriod{250};

  // How many are ready, as they were assessed last.
  int CountReady() const;
  // Tells each link whether there is another; to be called after that.
  void FindOthers();

  std::vector<NodeKnowledge*> knowledge();
  std::vector<const NodeKnowledge*> knowledge() const;
  // Whether a node of this name takes new sessions, or the name is not ours.
  bool IsServed(const std::string& name) const;

  struct Choice {
    Seat<NodeType> seat = nullptr;  // null: none is ready
    NodeDescription description = {};
    bool is_doubtful = false;  // lately it failed, and so did all others
  };
  using Fits =
      std::function<bool(const NodeType& node, const NodeDescription& answer)>;
  // A place for a session, on one of the nodes that fit it; empty: on any. A
  // salt takes it where others with it have been, if that is free enough.
  Choice Choose(const SessionId& session, const Fits& fits = {},
                absl::string_view cache_salt = {});
  // A salt that is a session's own: if it comes again with that, it comes to
  // this node, where what it had cached may still be.
  std::string DrawSalt(const NodeType& home) const;

 private:
  struct Member {
    std::unique_ptr<NodeType> node;
    NodeKnowledge knowledge = {};
    bool is_asked = false;  // and its answer is awaited
    Clock::time_point asked_at = {};
    bool is_late = false;      // its last answer did not come in time
    bool is_lost = false;      // its name has no address at all any more
    ModelIdentity model = {};  // that it has said last to be, but its numerics
  };

  bool Has(const std::string& name) const;
  static bool IsOpen(const Member& member) {
    return member.knowledge.ready() && !member.node->link.is_leaving;
  }
  static NodeCandidate CandidateOf(const Member& member);
  NodeType* Ask(Member& member);

  const std::vector<std::string> names_;
  const Make make_;
  std::vector<Member> members_;
  Clock::time_point looked_at_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_NODE_GROUP_H_
