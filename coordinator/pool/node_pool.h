// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_NODE_POOL_H_
#define OUTRIDER_COORDINATOR_POOL_NODE_POOL_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/nodes/node.h"
#include "coordinator/nodes/node_group.h"
#include "coordinator/nodes/node_knowledge.h"
#include "coordinator/nodes/node_releases.h"
#include "coordinator/nodes/session_moves.h"
#include "coordinator/nodes/session_nodes.h"
#include "coordinator/nodes/session_pool.h"
#include "coordinator/nodes/waiting_room.h"
#include "coordinator/pool/discovery.h"
#include "coordinator/pool/node_pool_options.h"
#include "coordinator/pool/queue_timer.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/resolver.h"

namespace outrider {

// The drafters and verifiers of this coordinator: every address of every name.
// Each is asked once a second what it is, and more often while it does not
// answer; sessions come to those that do and fit. Thread-safe.
class NodePool final : public SessionPool {
 public:
  using Options = NodePoolOptions;
  struct Overview {
    std::vector<NodeDescription> verifiers = {};
    std::vector<NodeDescription> drafters = {};
    std::vector<std::string> refused_verifiers = {};  // and why
    std::vector<std::string> refused_drafters = {};
  };

  // Queue and resolver must outlive it, and it all SessionNodes.
  NodePool(Options options, CallQueue& queue, Resolver& resolver);
  NodePool(const NodePool&) = delete;
  ~NodePool() override;

  // Begins to resolve names and to ask nodes.
  void Start();

  // ChooseNode chooses, rather one that serves the needs. Who has no salt gets
  // one. UNAVAILABLE: none is ready. FAILED_PRECONDITION: none is `wanted`.
  absl::StatusOr<SessionNodes> Assign(
      const SessionId& session, const std::optional<WantedModel>& wanted = {},
      absl::string_view cache_salt = {}, const VerifierNeeds& needs = {});
  NodeGroup<VerifierNode>::Choice ChooseVerifier(
      const SessionId& session,
      const NodeGroup<VerifierNode>::Fits& fits) override;
  NodeGroup<DrafterNode>::Choice ChooseDrafter(
      const SessionId& session,
      const NodeGroup<DrafterNode>::Fits& fits) override;
  void Doubt(const VerifierNode& node, const ModelIdentity& model) override;
  void Doubt(const DrafterNode& node, const ModelIdentity& model) override;
  void Correct(const VerifierNode& node, const NodeDescription& said) override;
  Timer& timer() override { return timer_; }
  WaitingRoom& waiting_room() override { return waiting_room_; }
  NodeReleases& releases() override { return releases_; }
  SessionMoves& moves() override { return moves_; }
  VerifierLosses& losses() override { return losses_; }
  int NumVerifiersReady() const override { return num_verifiers_ready_; }
  // FAILED_PRECONDITION: one does not fit. UNAVAILABLE: one is not known yet.
  absl::Status CheckDrafters() const;
  Overview Describe() const;
  int CountVerifiers(NodeState state) const;
  int CountDrafters(NodeState state) const;

 private:
  void SetAddresses(const std::string& name,
                    const std::vector<std::string>& addresses);
  bool IsServed(const std::string& name) const;
  enum class Whom { kAll, kQuiet };
  void AskNodes(Whom whom);
  template <typename NodeType>
  Task<void> Ask(NodeType& node);
  void Learn(const DrafterNode& node, absl::StatusOr<NodeDescription> answer);
  void Learn(const VerifierNode& node, absl::StatusOr<NodeDescription> answer);
  void Answered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Assess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  QueueTimer timer_;
  Resolver& resolver_;
  WaitingRoom waiting_room_;
  SessionMoves moves_;
  VerifierLosses losses_;
  std::atomic<int> num_verifiers_ready_ = 0;
  Cancellation closing_;  // of what nodes are asked

  mutable Mutex mu_;
  CondVar answered_;
  int num_asked_ ABSL_GUARDED_BY(mu_) = 0;  // and awaited
  NodeGroup<VerifierNode> verifiers_ ABSL_GUARDED_BY(mu_);
  NodeGroup<DrafterNode> drafters_ ABSL_GUARDED_BY(mu_);
  std::string tokenizer_hash_ ABSL_GUARDED_BY(mu_);  // in use

  // Last: they use the members above.
  NodeReleases releases_{waiting_room_};
  std::optional<Discovery> discovery_;
  std::jthread asking_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_NODE_POOL_H_
