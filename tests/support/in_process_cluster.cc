// SPDX-License-Identifier: Apache-2.0
#include "tests/support/in_process_cluster.h"

#include <future>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/rpc/channel.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "drafter/model_strategy.h"

namespace outrider::testing {
namespace {

std::unique_ptr<RpcServer> Serve(const std::string& listen,
                                 const std::vector<grpc::Service*>& services) {
  auto server = RpcServer::Start({.listen = listen}, services);
  OUTRIDER_CHECK(server.ok()) << server.status();
  return *std::move(server);
}

}  // namespace

template <typename Engine, typename Service>
InProcessNode<Engine, Service>::InProcessNode(
    std::unique_ptr<Engine> engine, const NodeDescription& description,
    const std::string& listen, int queue_length)
    : engine_(std::move(engine)),
      model_thread_(queue_length,
                    [this] { engine_->Expire(SessionTable::Clock::now()); }),
      service_(*engine_, model_thread_, description),
      cache_service_({.truncate =
                          [this](const RequestHeader& header, int length) {
                            return engine_->Truncate(header, length);
                          },
                      .release =
                          [this](const RequestHeader& header) {
                            return engine_->Release(header);
                          }},
                     model_thread_),
      server_(Serve(listen, {&service_, &cache_service_})) {
  server_->SetServing(true);
}

template <typename Engine, typename Service>
InProcessNode<Engine, Service>::~InProcessNode() {
  server_->Shutdown(std::chrono::seconds(0));
}

template <typename Engine, typename Service>
int InProcessNode<Engine, Service>::num_sessions() {
  std::promise<int> count;
  OUTRIDER_CHECK(model_thread_.Submit(
      [&] { count.set_value(engine_->sessions().num_sessions()); }));
  return count.get_future().get();
}

template class InProcessNode<DraftEngine, DrafterServiceImpl>;
template class InProcessNode<VerifyEngine, VerifierServiceImpl>;

InProcessCluster::InProcessCluster(Options options)
    : options_(std::move(options)), tokenizer_(options_.tokenizer) {
  SetUpGrpc();
  if (!options_.tokenizer_directory.empty()) {
    auto tokenizer = LoadTokenizer(options_.tokenizer_directory);
    OUTRIDER_CHECK(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
  }
  StartDrafter();
  StartVerifier();
  if (!options_.start_verifier) StopVerifier();

  queue_ = std::make_unique<CallQueue>(/*num_threads=*/2);
  NodePool::Options nodes = {.drafters = {drafter_listen_},
                             .verifiers = {verifier_listen_},
                             .max_waiting = options_.max_waiting};
  for (const TableLm::Options& target : options_.other_targets) {
    others_.push_back(MakeVerifier(target, "0", "127.0.0.1:0"));
    nodes.verifiers.push_back(others_.back()->address());
  }
  if (tokenizer_ != nullptr) nodes.tokenizer_hash = tokenizer_->fingerprint();
  pool_ = std::make_unique<NodePool>(nodes, *queue_, resolver_);
  service_ = std::make_unique<GenerationServiceImpl>(
      GenerationServiceImpl::Parts{.pool = *pool_,
                                   .queue = *queue_,
                                   .tokenizer = tokenizer_.get(),
                                   .metrics = metrics_},
      GenerationServiceImpl::Options{.max_sessions = options_.max_sessions});
  server_ = Serve("127.0.0.1:0", {service_.get()});
  pool_->Start();
  client_ = std::make_unique<client::GenerationClient>(server_->address());
}

InProcessCluster::~InProcessCluster() {
  OUTRIDER_CHECK(service_->Drain(std::chrono::seconds(0)));
  server_->Shutdown(std::chrono::seconds(0));
}

void InProcessCluster::StartDrafter() {
  auto strategy = std::make_unique<ModelStrategy>(
      std::make_unique<TableLm>(options_.draft), options_.draft.vocab_size);
  auto engine = std::make_unique<DraftEngine>(
      std::move(strategy),
      DraftEngine::Options{.vocab_size = options_.draft.vocab_size,
                           .context_length = options_.draft.context_length,
                           .max_draft_tokens = options_.max_draft_tokens});
  drafter_ = std::make_unique<DrafterNodeUnderTest>(
      std::move(engine),
      Describe(options_.draft, options_.drafter_tokenizer_hash, "0"),
      drafter_listen_, options_.queue_length);
  drafter_listen_ = drafter_->address();
}

void InProcessCluster::StartVerifier(const std::string& weights_hash) {
  verifier_ = MakeVerifier(options_.target, weights_hash, verifier_listen_);
  verifier_listen_ = verifier_->address();
}

std::unique_ptr<VerifierNodeUnderTest> InProcessCluster::MakeVerifier(
    const TableLm::Options& model, const std::string& weights_hash,
    const std::string& listen) const {
  auto engine = std::make_unique<VerifyEngine>(
      std::make_unique<TableLm>(model),
      VerifyEngine::Options{.vocab_size = model.vocab_size,
                            .max_draft_tokens = options_.max_draft_tokens});
  return std::make_unique<VerifierNodeUnderTest>(
      std::move(engine), Describe(model, "same", weights_hash), listen,
      options_.queue_length);
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
      .reply_formats = {ReplyFormat::kFull, ReplyFormat::kFullBFloat16,
                        ReplyFormat::kSparse, ReplyFormat::kTokens},
      .rules = options_.rules,
      .numerics = "table"};
}

bool InProcessCluster::WaitUntilReady() {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    const NodePool::Overview nodes = pool_->Describe();
    if (nodes.verifiers.size() > others_.size() &&
        nodes.drafters.size() + nodes.refused_drafters.size() > 0) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

}  // namespace outrider::testing
