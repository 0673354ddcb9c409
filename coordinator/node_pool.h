// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODE_POOL_H_
#define OUTRIDER_COORDINATOR_NODE_POOL_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/circuit_breaker.h"
#include "coordinator/grpc_cache_stub.h"
#include "coordinator/grpc_draft_stub.h"
#include "coordinator/grpc_verify_stub.h"
#include "core/base/mutex.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/wire/node_description.h"

namespace outrider {

// One drafter: its connection, and what all sessions on it share.
struct DrafterNode {
  std::string address;
  GrpcDraftStub stub;
  GrpcCacheStub cache;
  CircuitBreaker breaker = {};
};

struct VerifierNode {
  std::string address;
  GrpcVerifyStub stub;
  GrpcCacheStub cache;
};

// The drafters and verifiers of this coordinator. A thread asks each what it
// is, once a second: only a drafter that fits the verifier is used.
// Thread-safe. Nodes live as long as the pool.
class NodePool {
 public:
  struct Options {
    std::vector<std::string> drafters = {};
    std::vector<std::string> verifiers = {};
    std::string tokenizer_hash = {};  // the coordinator's; empty: none
    ChannelOptions channel = {};      // of every node
    std::chrono::milliseconds draft_timeout = std::chrono::seconds(2);
    std::chrono::milliseconds verify_timeout = std::chrono::seconds(30);
    // Added to both for each token that a cache lacks.
    std::chrono::milliseconds timeout_per_token = std::chrono::milliseconds(20);
  };

  // A session's; the drafter is null where none answers or fits.
  struct Pair {
    VerifierNode* verifier = nullptr;
    NodeDescription verifier_description = {};
    DrafterNode* drafter = nullptr;
    NodeDescription drafter_description = {};
  };

  struct Overview {
    std::vector<NodeDescription> verifiers = {};
    std::vector<NodeDescription> drafters = {};
    std::vector<std::string> refused_verifiers = {};  // and why
    std::vector<std::string> refused_drafters = {};
  };

  NodePool(Options options, CallQueue& queue);
  NodePool(const NodePool&) = delete;

  // Asks every node now, then in the background.
  void Start();

  // For a new session, in turn over what is ready. UNAVAILABLE: no verifier.
  absl::StatusOr<Pair> Assign();

  bool HasVerifier() const;
  absl::Status RefusedDrafter() const;  // the first that does not fit
  Overview Describe() const;

 private:
  // A node's description, or why it cannot be used.
  struct Knowledge {
    std::optional<NodeDescription> description = {};
    absl::Status problem = absl::UnavailableError("not asked yet");
    bool ready() const { return problem.ok(); }
    bool refused() const { return absl::IsFailedPrecondition(problem); }
  };
  struct Drafter {
    DrafterNode node;
    Knowledge knowledge = {};
  };
  struct Verifier {
    VerifierNode node;
    Knowledge knowledge = {};
  };

  void AskAll();
  Knowledge Judge(absl::StatusOr<NodeDescription> answer,
                  bool is_verifier) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const NodeDescription* ReferenceVerifier() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Learn(const std::string& address, Knowledge news, Knowledge& knowledge)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  std::vector<std::unique_ptr<Drafter>> drafters_;
  std::vector<std::unique_ptr<Verifier>> verifiers_;

  mutable Mutex mu_;
  uint64_t next_turn_ ABSL_GUARDED_BY(mu_) = 0;

  std::jthread watcher_;  // last: it uses the members above
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODE_POOL_H_
