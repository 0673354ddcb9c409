// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_IN_PROCESS_CLUSTER_H_
#define OUTRIDER_TESTS_SUPPORT_IN_PROCESS_CLUSTER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/generation_client.h"
#include "coordinator/pool/node_pool.h"
#include "coordinator/service/coordinator_metrics.h"
#include "coordinator/service/generation_service.h"
#include "core/node/cache_service.h"
#include "core/node/model_thread.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/resolver.h"
#include "core/rpc/server.h"
#include "core/testing/table_lm.h"
#include "core/tokenizer/tokenizer.h"
#include "drafter/drafter_service.h"
#include "verifier/verifier_service.h"

namespace outrider::testing {

// One drafter or verifier on a port of its own: the production services over a
// TableLm, in this process.
template <typename Engine, typename Service>
class InProcessNode {
 public:
  InProcessNode(std::unique_ptr<Engine> engine,
                const NodeDescription& description, const std::string& listen,
                int queue_length = 1024);
  // Like a process that is killed: calls in flight are broken off.
  ~InProcessNode();

  const std::string& address() const { return server_->address(); }
  // Sessions whose caches the node holds.
  int num_sessions();
  NodeCounters& counters() { return model_thread_.counters(); }

 private:
  const std::unique_ptr<Engine> engine_;
  ModelThread model_thread_;
  Service service_;
  CacheServiceImpl cache_service_;
  std::unique_ptr<RpcServer> server_;
};

using DrafterNodeUnderTest = InProcessNode<DraftEngine, DrafterServiceImpl>;
using VerifierNodeUnderTest = InProcessNode<VerifyEngine, VerifierServiceImpl>;

// Coordinator, drafter and verifier as in production, over real gRPC on
// loopback, in one process. Nodes can be stopped and started again on their
// old ports.
class InProcessCluster {
 public:
  struct Options {
    TableLm::Options target = {};
    TableLm::Options draft = {};
    std::string tokenizer_directory = {};       // empty: token prompts only
    std::shared_ptr<Tokenizer> tokenizer = {};  // in place of the directory's
    std::string drafter_tokenizer_hash = "same";
    std::vector<TableLm::Options> other_targets = {};  // more verifiers
    int queue_length = 1024;                           // of a node
    int max_sessions = 64;
    int max_waiting = 64;
    int max_draft_tokens = 8;
    std::vector<RuleKind> rules = {RuleKind::kRejection, RuleKind::kBlock,
                                   RuleKind::kCoupled};
    bool start_verifier = true;
  };

  explicit InProcessCluster(Options options);
  ~InProcessCluster();

  client::GenerationClient& client() { return *client_; }
  GenerationServiceImpl& service() { return *service_; }
  NodePool& pool() { return *pool_; }
  // The coordinator's, NOT_SERVING as after RpcServer::Start.
  RpcServer& server() { return *server_; }

  void StopDrafter() { drafter_.reset(); }
  void StopVerifier() { verifier_.reset(); }
  void StartDrafter();
  void StartVerifier(const std::string& weights_hash = "0");
  DrafterNodeUnderTest& drafter() { return *drafter_; }
  VerifierNodeUnderTest& verifier() { return *verifier_; }
  VerifierNodeUnderTest& other_verifier(int i) { return *others_.at(i); }
  // Until the pool knows all nodes; false when that takes longer than 10 s.
  bool WaitUntilReady();

 private:
  std::unique_ptr<VerifierNodeUnderTest> MakeVerifier(
      const TableLm::Options& model, const std::string& weights_hash,
      const std::string& listen) const;
  NodeDescription Describe(const TableLm::Options& model,
                           const std::string& tokenizer_hash,
                           const std::string& weights_hash) const;

  const Options options_;
  std::string drafter_listen_ = "127.0.0.1:0";
  std::string verifier_listen_ = "127.0.0.1:0";
  std::unique_ptr<DrafterNodeUnderTest> drafter_;
  std::unique_ptr<VerifierNodeUnderTest> verifier_;
  std::vector<std::unique_ptr<VerifierNodeUnderTest>> others_;
  std::shared_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<CallQueue> queue_;
  SystemResolver resolver_;
  std::unique_ptr<NodePool> pool_;
  MetricRegistry registry_{{}};
  CoordinatorMetrics metrics_{registry_};
  std::unique_ptr<GenerationServiceImpl> service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<client::GenerationClient> client_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_IN_PROCESS_CLUSTER_H_
