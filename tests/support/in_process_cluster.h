// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_IN_PROCESS_CLUSTER_H_
#define OUTRIDER_TESTS_SUPPORT_IN_PROCESS_CLUSTER_H_

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "client/generation_client.h"
#include "coordinator/pool/node_pool.h"
#include "coordinator/service/coordinator_metrics.h"
#include "coordinator/service/generation_service.h"
#include "core/node/local_node.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/resolver.h"
#include "core/rpc/server.h"
#include "core/testing/own_loopback.h"
#include "core/testing/table_lm.h"
#include "core/tokenizer/tokenizer.h"

namespace outrider::testing {

// A drafter and a verifier on ports of their own: the production services over
// a TableLm, in this process.
std::unique_ptr<LocalNode> MakeDrafter(const TableLm::Options& model,
                                       const NodeDescription& description,
                                       LocalNode::Options options = {});
std::unique_ptr<LocalNode> MakeVerifier(const TableLm::Options& model,
                                        const NodeDescription& description,
                                        LocalNode::Options options = {});

std::vector<ReplyFormat> AllReplyFormats();
std::vector<RuleKind> AllRules();

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
    std::string other_numerics = "table";              // of those
    std::vector<TableLm::Options> other_drafts = {};   // more drafters
    std::vector<std::string> more_verifiers = {};  // that the test runs itself
    int queue_length = 1024;                       // of a node
    int num_blocks = 1 << 15;                      // of 16 tokens, of a node
    int num_other_blocks = 1 << 14;                // of a verifier more
    int max_sessions = 64;
    std::chrono::milliseconds resume_patience = std::chrono::minutes(1);
    int max_waiting = 64;
    int max_draft_tokens = 8;
    int other_max_draft_tokens = 8;  // of a verifier more
    std::vector<ReplyFormat> other_reply_formats = AllReplyFormats();
    std::vector<RuleKind> other_rules = AllRules();
    std::vector<RuleKind> rules = AllRules();
    bool start_verifier = true;
    int max_reply_bytes = 64 << 20;  // until a node's model is known
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
  void StopOtherDrafter(int i) { other_drafters_.at(i).reset(); }
  void StopOtherVerifier(int i) { others_.at(i).reset(); }
  void StartDrafter(const std::string& tokenizer_hash = "same");
  // It takes as many drafts as the options say, or fewer.
  void StartVerifier(const std::string& weights_hash = "0",
                     int max_draft_tokens = std::numeric_limits<int>::max());
  LocalNode& drafter() { return *drafter_; }
  LocalNode& verifier() { return *verifier_; }
  LocalNode& other_drafter(int i) { return *other_drafters_.at(i); }
  LocalNode& other_verifier(int i) { return *others_.at(i); }

  // Waits until the pool knows all nodes and the client is connected; false
  // after 10 s.
  bool WaitUntilReady();

 private:
  LocalNode::Options NodeOptions(const std::string& listen) const;
  NodeDescription Describe(const TableLm::Options& model,
                           const std::string& tokenizer_hash,
                           const std::string& weights_hash) const;

  const Options options_;
  std::string drafter_listen_ = OwnLoopback();
  std::string verifier_listen_ = OwnLoopback();
  std::unique_ptr<LocalNode> drafter_;
  std::unique_ptr<LocalNode> verifier_;
  std::vector<std::unique_ptr<LocalNode>> others_;
  std::vector<std::unique_ptr<LocalNode>> other_drafters_;
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
