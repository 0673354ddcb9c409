// SPDX-License-Identifier: Apache-2.0
#include "coordinator/node_pool.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace outrider {
namespace {

constexpr std::chrono::seconds kAskInterval(1);

}  // namespace

NodePool::NodePool(Options options, CallQueue& queue)
    : options_(std::move(options)) {
  for (const std::string& address : options_.drafters) {
    const auto channel = MakeChannel(address, options_.channel);
    drafters_.push_back(std::unique_ptr<Drafter>(new Drafter{
        .node = {
            .address = address,
            .stub = GrpcDraftStub(
                channel, {.queue = queue,
                          .timeout = options_.draft_timeout,
                          .timeout_per_token = options_.timeout_per_token}),
            .cache = GrpcCacheStub(channel, queue)}}));
  }
  for (const std::string& address : options_.verifiers) {
    // FULL rows of large vocabularies: gRPC's default of 4 MiB is too little.
    const auto channel = MakeChannel(address, options_.channel);
    verifiers_.push_back(std::unique_ptr<Verifier>(new Verifier{
        .node = {
            .address = address,
            .stub = GrpcVerifyStub(
                channel, {.queue = queue,
                          .timeout = options_.verify_timeout,
                          .timeout_per_token = options_.timeout_per_token}),
            .cache = GrpcCacheStub(channel, queue)}}));
  }
}

void NodePool::Start() {
  AskAll();
  watcher_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mu;
    std::condition_variable_any wake;
    std::unique_lock<std::mutex> lock(mu);
    while (!wake.wait_for(lock, stop, kAskInterval,
                          [&] { return stop.stop_requested(); })) {
      AskAll();
    }
  });
}

void NodePool::AskAll() {
  // Verifiers first: the drafters are held against them.
  for (const auto& verifier : verifiers_) {
    auto answer = verifier->node.stub.Describe(kAskInterval);
    if (answer.ok()) verifier->node.stub.set_vocab_size(answer->vocab_size);
    MutexLock lock(mu_);
    Learn(verifier->node.address, Judge(std::move(answer), true),
          verifier->knowledge);
  }
  for (const auto& drafter : drafters_) {
    auto answer = drafter->node.stub.Describe(kAskInterval);
    if (answer.ok()) drafter->node.stub.set_vocab_size(answer->vocab_size);
    MutexLock lock(mu_);
    Learn(drafter->node.address, Judge(std::move(answer), false),
          drafter->knowledge);
  }
}

NodePool::Knowledge NodePool::Judge(absl::StatusOr<NodeDescription> answer,
                                    bool is_verifier) const {
  if (!answer.ok()) {
    return {.problem = absl::UnavailableError(
                absl::StrCat("does not answer: ", answer.status().message()))};
  }
  Knowledge news = {.description = *std::move(answer)};
  const NodeDescription& node = *news.description;
  const NodeDescription* reference = ReferenceVerifier();
  if (is_verifier) {
    news.problem = CheckVerifier(node);
    if (news.problem.ok() && !options_.tokenizer_hash.empty() &&
        node.tokenizer_hash != options_.tokenizer_hash) {
      news.problem = absl::FailedPreconditionError(
          "its tokenizer is not the one of --tokenizer: pass the directory of "
          "the verifier's model");
    }
    if (news.problem.ok() && reference != nullptr &&
        node.weights_hash != reference->weights_hash) {
      news.problem = absl::FailedPreconditionError(
          "its weights are not those of the other verifiers");
    }
  } else if (reference == nullptr) {
    news.problem = absl::UnavailableError("no verifier to hold it against yet");
  } else {
    news.problem = CheckPair(node, *reference);
  }
  return news;
}

const NodeDescription* NodePool::ReferenceVerifier() const {
  for (const auto& verifier : verifiers_) {
    if (verifier->knowledge.ready()) return &*verifier->knowledge.description;
  }
  return nullptr;
}

void NodePool::Learn(const std::string& address, Knowledge news,
                     Knowledge& knowledge) {
  if (news.problem != knowledge.problem) {
    if (news.ready()) {
      OUTRIDER_LOG(kInfo) << address
                          << " is ready: " << news.description->model_name
                          << ", " << news.description->dtype << " on "
                          << news.description->device;
    } else {
      OUTRIDER_LOG(kWarning)
          << address << " is not used: " << news.problem.message();
    }
  }
  knowledge = std::move(news);
}

absl::StatusOr<NodePool::Pair> NodePool::Assign() {
  MutexLock lock(mu_);
  const uint64_t turn = next_turn_++;
  Pair pair;
  for (size_t i = 0; i < verifiers_.size(); ++i) {
    Verifier& verifier = *verifiers_[(turn + i) % verifiers_.size()];
    if (!verifier.knowledge.ready()) continue;
    pair.verifier = &verifier.node;
    pair.verifier_description = *verifier.knowledge.description;
    break;
  }
  if (pair.verifier == nullptr) {
    return absl::UnavailableError(
        "no verifier is ready to serve this coordinator; try again later");
  }
  for (size_t i = 0; i < drafters_.size(); ++i) {
    Drafter& drafter = *drafters_[(turn + i) % drafters_.size()];
    if (!drafter.knowledge.ready()) continue;
    pair.drafter = &drafter.node;
    pair.drafter_description = *drafter.knowledge.description;
    break;
  }
  return pair;
}

bool NodePool::HasVerifier() const {
  MutexLock lock(mu_);
  return ReferenceVerifier() != nullptr;
}

absl::Status NodePool::RefusedDrafter() const {
  MutexLock lock(mu_);
  for (const auto& drafter : drafters_) {
    if (drafter->knowledge.refused()) return drafter->knowledge.problem;
  }
  return absl::OkStatus();
}

NodePool::Overview NodePool::Describe() const {
  MutexLock lock(mu_);
  Overview overview;
  for (const auto& verifier : verifiers_) {
    const Knowledge& knowledge = verifier->knowledge;
    if (knowledge.ready()) {
      overview.verifiers.push_back(*knowledge.description);
    } else if (knowledge.refused()) {
      overview.refused_verifiers.emplace_back(knowledge.problem.message());
    }
  }
  for (const auto& drafter : drafters_) {
    const Knowledge& knowledge = drafter->knowledge;
    if (knowledge.ready()) {
      overview.drafters.push_back(*knowledge.description);
    } else if (knowledge.refused()) {
      overview.refused_drafters.emplace_back(knowledge.problem.message());
    }
  }
  return overview;
}

}  // namespace outrider
