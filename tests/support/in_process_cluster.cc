// SPDX-License-Identifier: Apache-2.0
#include "tests/support/in_process_cluster.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/rpc/channel.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/wire/message_limits.h"
#include "drafter/drafter_service.h"
#include "tests/support/small_cluster.h"
#include "verifier/verifier_service.h"

namespace outrider::testing {

std::unique_ptr<LocalNode> MakeDrafter(const TableLm::Options& model,
                                       const NodeDescription& description,
                                       LocalNode::Options options) {
  return std::make_unique<LocalNode>(
      std::make_unique<TableLm>(model), description,
      [&](Node& node) { return MakeDrafterService(node, description); },
      options);
}

std::unique_ptr<LocalNode> MakeVerifier(const TableLm::Options& model,
                                        const NodeDescription& description,
                                        LocalNode::Options options) {
  return std::make_unique<LocalNode>(
      std::make_unique<TableLm>(model), description,
      [&](Node& node) { return MakeVerifierService(node, description); },
      options);
}

std::vector<ReplyFormat> AllReplyFormats() {
  return {std::begin(kReplyFormats), std::end(kReplyFormats)};
}

std::vector<RuleKind> AllRules() {
  return {RuleKind::kRejection, RuleKind::kBlock, RuleKind::kCoupled};
}

InProcessCluster::InProcessCluster(Options options)
    : options_(std::move(options)), tokenizer_(options_.tokenizer) {
  SetUpGrpc();
  if (!options_.tokenizer_directory.empty()) {
    auto tokenizer = LoadTokenizer(options_.tokenizer_directory);
    OUTRIDER_CHECK(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
  }
  StartDrafter(options_.drafter_tokenizer_hash);
  StartVerifier();
  if (!options_.start_verifier) StopVerifier();

  queue_ = std::make_unique<CallQueue>(/*num_threads=*/2);
  NodePool::Options nodes = {.drafters = {drafter_listen_},
                             .verifiers = {verifier_listen_},
                             .max_waiting = options_.max_waiting};
  for (const TableLm::Options& target : options_.other_targets) {
    LocalNode::Options node = NodeOptions(OwnLoopback());
    node.scheduling.sessions.num_blocks = options_.num_other_blocks;
    NodeDescription description = Describe(target, "same", "0");
    description.numerics = options_.other_numerics;
    description.max_draft_tokens = options_.other_max_draft_tokens;
    description.reply_formats = options_.other_reply_formats;
    description.rules = options_.other_rules;
    others_.push_back(MakeVerifier(target, description, node));
    nodes.verifiers.push_back(others_.back()->address());
  }
  for (const std::string& address : options_.more_verifiers) {
    nodes.verifiers.push_back(address);
  }
  for (const TableLm::Options& draft : options_.other_drafts) {
    other_drafters_.push_back(MakeDrafter(draft, Describe(draft, "same", "0"),
                                          NodeOptions(OwnLoopback())));
    nodes.drafters.push_back(other_drafters_.back()->address());
  }
  nodes.channel.max_receive_bytes = options_.max_reply_bytes;
  if (tokenizer_ != nullptr) nodes.tokenizer_hash = tokenizer_->fingerprint();
  pool_ = std::make_unique<NodePool>(nodes, *queue_, resolver_);
  service_ = std::make_unique<GenerationServiceImpl>(
      GenerationServiceImpl::Parts{.pool = *pool_,
                                   .queue = *queue_,
                                   .tokenizer = tokenizer_.get(),
                                   .metrics = metrics_},
      GenerationServiceImpl::Options{
          .max_sessions = options_.max_sessions,
          .resume_patience = options_.resume_patience});
  auto server = RpcServer::Start(
      {.listen = OwnLoopback(), .max_receive_bytes = kMaxGenerateRequestBytes},
      {service_.get()}, *queue_);
  OUTRIDER_CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  pool_->Start();
  client_ = std::make_unique<client::GenerationClient>(server_->address());
}

InProcessCluster::~InProcessCluster() {
  OUTRIDER_CHECK(service_->Drain(std::chrono::seconds(0)));
  server_->Shutdown(std::chrono::seconds(0));
}

void InProcessCluster::StartDrafter(const std::string& tokenizer_hash) {
  drafter_ =
      MakeDrafter(options_.draft, Describe(options_.draft, tokenizer_hash, "0"),
                  NodeOptions(drafter_listen_));
  drafter_listen_ = drafter_->address();
}

void InProcessCluster::StartVerifier(const std::string& weights_hash,
                                     int max_draft_tokens) {
  NodeDescription description = Describe(options_.target, "same", weights_hash);
  description.max_draft_tokens =
      std::min(description.max_draft_tokens, max_draft_tokens);
  verifier_ =
      MakeVerifier(options_.target, description, NodeOptions(verifier_listen_));
  verifier_listen_ = verifier_->address();
}

LocalNode::Options InProcessCluster::NodeOptions(
    const std::string& listen) const {
  LocalNode::Options options = {.listen = listen};
  options.scheduling.sessions.num_blocks = options_.num_blocks;
  // One more is being served.
  options.scheduling.max_queue_length = options_.queue_length + 1;
  return options;
}

NodeDescription InProcessCluster::Describe(
    const TableLm::Options& model, const std::string& tokenizer_hash,
    const std::string& weights_hash) const {
  const bool is_same = tokenizer_hash == "same" && tokenizer_ != nullptr;
  return {
      .model_name = "table",
      .weights_hash = weights_hash,
      .tokenizer_hash = is_same ? tokenizer_->fingerprint() : tokenizer_hash,
      .vocab_size = model.vocab_size,
      .eos_ids = model.eos_ids,
      .context_length = model.context_length,
      .dtype = "float32",
      .max_draft_tokens = options_.max_draft_tokens,
      .reply_formats = AllReplyFormats(),
      .rules = options_.rules,
      .numerics = "table"};
}

bool InProcessCluster::WaitUntilReady() {
  HaveFirstStreams();
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    const NodePool::Overview nodes = pool_->Describe();
    const bool knows_all =
        nodes.verifiers.size() >
            others_.size() + options_.more_verifiers.size() &&
        nodes.drafters.size() + nodes.refused_drafters.size() >
            other_drafters_.size();
    // The first calls may take longer than an attempt to connect may, as
    // HaveFirstStreams says.
    if (knows_all && client_->Describe(std::chrono::seconds(5)).ok()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

}  // namespace outrider::testing
