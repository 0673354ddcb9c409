// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_SIMULATED_POOL_H_
#define OUTRIDER_TESTS_SIMULATION_SIMULATED_POOL_H_

#include <memory>
#include <string>
#include <vector>

#include "coordinator/nodes/session_pool.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "tests/simulation/cluster.h"
#include "tests/support/loop_timer.h"

namespace outrider::testing {

// The pool of a run's coordinators: production's choice of nodes, and its
// sessions' moves, over simulated nodes and links.
class SimulatedPool final : public SessionPool {
 public:
  // The cluster's nodes must be there; it must outlive this.
  explicit SimulatedPool(Cluster& cluster);

  NodeGroup<VerifierNode>::Choice ChooseVerifier(
      const SessionId& session,
      const NodeGroup<VerifierNode>::Fits& fits) override {
    return verifiers_.Choose(session, fits);
  }
  NodeGroup<DrafterNode>::Choice ChooseDrafter(
      const SessionId& session,
      const NodeGroup<DrafterNode>::Fits& fits) override {
    return drafters_.Choose(session, fits);
  }
  void Doubt(const VerifierNode& node, const ModelIdentity& model) override {
    DoubtIn(verifiers_, node, model);
  }
  void Doubt(const DrafterNode& node, const ModelIdentity& model) override {
    DoubtIn(drafters_, node, model);
  }
  void Correct(const VerifierNode& node, const NodeDescription& said) override {
    verifiers_.Correct(node, said);
    Assess();
  }
  int NumVerifiersReady() const override { return num_ready_; }
  Timer& timer() override { return timer_; }
  WaitingRoom& waiting_room() override { return room_; }
  NodeReleases& releases() override { return releases_; }
  SessionMoves& moves() override { return moves_; }
  VerifierLosses& losses() override { return losses_; }

  // Asks all nodes what they are; about once a second.
  void AskAll();
  // Asks those that are quiet, which happens more often.
  void AskQuiet();

 private:
  template <typename NodeType>
  void DoubtIn(NodeGroup<NodeType>& group, const NodeType& node,
               const ModelIdentity& model) {
    if (!group.Doubt(node, model)) return;
    Assess();
    AskAll();
  }
  template <typename NodeType>
  Task<void> Ask(NodeType& node, NodeGroup<NodeType>& group);
  void Assess();

  LoopTimer timer_;
  Cancellation never_;
  NodeGroup<VerifierNode> verifiers_;
  NodeGroup<DrafterNode> drafters_;
  std::string tokenizer_hash_;
  int num_ready_ = 0;
  WaitingRoom room_{/*max_waiting=*/64};
  SessionMoves moves_;
  VerifierLosses losses_;
  NodeReleases releases_{room_};
  std::vector<MoveGate::Turn> shut_;  // a mistake
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_SIMULATED_POOL_H_
