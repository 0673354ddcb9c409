// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/node_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/refusal_reasons.h"
#include "coordinator/nodes/verifier_bounds.h"
#include "coordinator/pool/grpc_cache_stub.h"
#include "coordinator/pool/grpc_draft_stub.h"
#include "coordinator/pool/grpc_verify_stub.h"
#include "core/base/error_reason.h"
#include "core/base/stoppable_sleep.h"
#include "core/rpc/endpoint.h"

namespace outrider {
namespace {

constexpr std::chrono::seconds kAskInterval(1);
constexpr auto kLookPeriod = NodeGroup<VerifierNode>::kLookPeriod;
constexpr int64_t kLooksPerQuestion = kAskInterval / kLookPeriod;

// All sessions and all kinds of calls share a node's one connection, unless its
// replies are larger than most.
ConnectNode ConnectTo(const std::string& name, const std::string& address,
                      ChannelOptions options) {
  // A pod's certificate has its Service's name, not the pod's address.
  if (name != address) options.server_name = std::string(HostOf(name));
  return [address, options = std::move(options)](int max_receive_bytes) {
    ChannelOptions larger = options;
    larger.max_receive_bytes = max_receive_bytes;
    return MakeChannel(address, larger);
  };
}

// What makes the nodes of one kind, each with a connection of its own. Options
// and queue must outlive it.
template <typename NodeType, typename Stub>
typename NodeGroup<NodeType>::Make MakerOf(const NodePool::Options& options,
                                           std::chrono::milliseconds timeout,
                                           CallQueue& queue) {
  return [&options, timeout, &queue](const std::string& name,
                                     const std::string& address) {
    const ConnectNode connect = ConnectTo(name, address, options.channel);
    const auto channel = connect(options.channel.max_receive_bytes);
    auto stub = std::make_unique<Stub>(
        channel,
        GrpcNodeOptions{.queue = queue,
                        .timeout = timeout,
                        .timeout_per_token = options.timeout_per_token,
                        .max_receive_bytes = options.channel.max_receive_bytes,
                        .connect = connect,
                        .tls = options.tls});
    return std::unique_ptr<NodeType>(new NodeType{
        .link = {.name = name,
                 .address = address,
                 .is_connected =
                     [calls = stub.get()] { return calls->IsConnected(); }},
        .stub = std::move(stub),
        .cache = std::make_unique<GrpcCacheStub>(channel, queue)});
  };
}

int Count(const std::vector<const NodeKnowledge*>& nodes, NodeState state) {
  return static_cast<int>(std::count_if(
      nodes.begin(), nodes.end(),
      [&](const NodeKnowledge* node) { return node->state() == state; }));
}

const NodeKnowledge* FirstReady(
    const std::vector<const NodeKnowledge*>& nodes) {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(),
                   [](const NodeKnowledge* node) { return node->ready(); });
  return found == nodes.end() ? nullptr : *found;
}

}  // namespace

NodePool::NodePool(Options options, CallQueue& queue, Resolver& resolver)
    : options_(std::move(options)),
      timer_(queue),
      resolver_(resolver),
      waiting_room_(options_.max_waiting),
      verifiers_(options_.verifiers,
                 MakerOf<VerifierNode, GrpcVerifyStub>(
                     options_, options_.verify_timeout, queue)),
      drafters_(options_.drafters,
                MakerOf<DrafterNode, GrpcDraftStub>(
                    options_, options_.draft_timeout, queue)) {}

NodePool::~NodePool() {
  discovery_.reset();
  asking_ = {};  // joins
  closing_.Cancel();
  MutexLock lock(mu_);
  while (num_asked_ > 0) answered_.Wait(mu_);
}

void NodePool::Start() {
  std::vector<std::string> names;
  for (const auto& endpoints : {options_.verifiers, options_.drafters}) {
    for (const std::string& endpoint : endpoints) {
      if (IsResolved(endpoint)) {
        SetAddresses(endpoint, {endpoint});
      } else {
        names.push_back(endpoint);
      }
    }
  }
  discovery_.emplace(Discovery::Options{
      .resolver = resolver_,
      .names = std::move(names),
      .period = options_.resolve_period,
      .is_served = [this](const std::string& name) { return IsServed(name); },
      .on_change =
          [this](const std::string& name,
                 const std::vector<std::string>& addresses) {
            SetAddresses(name, addresses);
            AskNodes(Whom::kAll);
          }});
  asking_ = std::jthread([this](const std::stop_token& stop) {
    for (int64_t i = 0; !stop.stop_requested(); ++i) {
      AskNodes(i % kLooksPerQuestion == 0 ? Whom::kAll : Whom::kQuiet);
      SleepUnlessStopped(kLookPeriod, stop);
    }
  });
}

void NodePool::SetAddresses(const std::string& name,
                            const std::vector<std::string>& addresses) {
  MutexLock lock(mu_);
  verifiers_.SetAddresses(name, addresses);
  drafters_.SetAddresses(name, addresses);
  Assess();
}

bool NodePool::IsServed(const std::string& name) const {
  MutexLock lock(mu_);
  return verifiers_.IsServed(name) && drafters_.IsServed(name);
}

void NodePool::AskNodes(Whom whom) {
  std::vector<VerifierNode*> verifiers;
  std::vector<DrafterNode*> drafters;
  {
    MutexLock lock(mu_);
    if (whom == Whom::kQuiet) {
      const auto of_drafters = drafters_.Listen();
      const auto of_verifiers = verifiers_.Listen();
      verifiers = verifiers_.TakeQuiet(of_drafters.is_any_quiet);
      drafters =
          drafters_.TakeQuiet(of_verifiers.is_any_quiet, of_verifiers.last);
    } else {
      verifiers_.DropUnused();
      drafters_.DropUnused();
      verifiers = verifiers_.TakeToAsk();
      drafters = drafters_.TakeToAsk();
    }
    num_asked_ += static_cast<int>(verifiers.size() + drafters.size());
  }
  // All at once: one that does not answer keeps none of the others waiting.
  for (VerifierNode* verifier : verifiers) StartDetached(Ask(*verifier));
  for (DrafterNode* drafter : drafters) StartDetached(Ask(*drafter));
}

template <typename NodeType>
Task<void> NodePool::Ask(NodeType& node) {
  absl::StatusOr<NodeDescription> answer =
      co_await node.stub->Describe(kAskInterval, closing_);
  Learn(node, std::move(answer));  // the last use of the node, and of this pool
}

void NodePool::Learn(const VerifierNode& node,
                     absl::StatusOr<NodeDescription> answer) {
  MutexLock lock(mu_);
  verifiers_.Learn(node, std::move(answer));
  Answered();
}

void NodePool::Learn(const DrafterNode& node,
                     absl::StatusOr<NodeDescription> answer) {
  MutexLock lock(mu_);
  drafters_.Learn(node, std::move(answer));
  Answered();
}

void NodePool::Answered() {
  if (!closing_.cancelled()) Assess();
  --num_asked_;
  answered_.NotifyAll();
}

void NodePool::Assess() {
  AssessVerifiers(verifiers_.knowledge(),
                  {.tokenizer_hash = options_.tokenizer_hash,
                   .weights = options_.expected_weights},
                  tokenizer_hash_);
  num_verifiers_ready_ = verifiers_.CountReady();
  verifiers_.FindOthers();
  const NodeKnowledge* verifier =
      FirstReady(std::as_const(verifiers_).knowledge());
  AssessDrafters(drafters_.knowledge(),
                 verifier == nullptr ? nullptr : &*verifier->answer);
}

absl::StatusOr<SessionNodes> NodePool::Assign(
    const SessionId& session, const std::optional<WantedModel>& wanted,
    absl::string_view cache_salt, const VerifierNeeds& needs) {
  MutexLock lock(mu_);
  absl::Status same;  // of the last that was looked at
  const auto fits = [&](const VerifierNode&, const NodeDescription& answer) {
    if (!wanted.has_value()) return true;
    same = CheckSame(wanted->model, answer.identity(), wanted->sameness);
    return same.ok();
  };
  const auto serves = [&](const VerifierNode& node,
                          const NodeDescription& answer) {
    return Serves(answer, needs) && fits(node, answer);
  };
  auto verifier = verifiers_.Choose(session, serves, cache_salt);
  // Who reads the request says what this one lacks.
  if (verifier.seat == nullptr) {
    verifier = verifiers_.Choose(session, fits, cache_salt);
  }
  if (verifier.seat == nullptr && !same.ok()) {
    return WithErrorReason(
        absl::FailedPreconditionError(absl::StrCat(
            "no verifier here has the model that this stream began with (",
            same.message(),
            "): resume where it is served, or send the request again without "
            "the delivered tokens")),
        kModelNotServedReason);
  }
  if (verifier.seat == nullptr) {
    return absl::UnavailableError(
        "no verifier is ready to serve this coordinator; try again later");
  }
  std::string salt(cache_salt);
  if (salt.empty() && verifier.description.prefix_cache == kSharesBySalt) {
    salt = verifiers_.DrawSalt(*verifier.seat);
  }
  SessionNodes nodes = {
      .verifier = std::make_unique<SessionVerifier>(
          *this, session, std::move(verifier.seat), verifier.description),
      .verifier_description = verifier.description,
      .bounds = BoundsOf(std::as_const(verifiers_).knowledge(),
                         verifier.description, needs),
      .cache_salt = std::move(salt)};
  if (options_.drafters.empty()) return nodes;
  auto drafter = drafters_.Choose(session, /*fits=*/{}, cache_salt);
  nodes.drafter_description = drafter.description;
  nodes.drafter =
      std::make_unique<SessionDrafter>(*this, session, std::move(drafter));
  return nodes;
}

NodeGroup<DrafterNode>::Choice NodePool::ChooseDrafter(
    const SessionId& session, const NodeGroup<DrafterNode>::Fits& fits) {
  MutexLock lock(mu_);
  return drafters_.Choose(session, fits);
}

NodeGroup<VerifierNode>::Choice NodePool::ChooseVerifier(
    const SessionId& session, const NodeGroup<VerifierNode>::Fits& fits) {
  MutexLock lock(mu_);
  return verifiers_.Choose(session, fits);
}

void NodePool::Doubt(const VerifierNode& node, const ModelIdentity& model) {
  {
    MutexLock lock(mu_);
    if (!verifiers_.Doubt(node, model)) return;
    Assess();
  }
  AskNodes(Whom::kAll);
}

void NodePool::Doubt(const DrafterNode& node, const ModelIdentity& model) {
  {
    MutexLock lock(mu_);
    if (!drafters_.Doubt(node, model)) return;
    Assess();
  }
  AskNodes(Whom::kAll);
}

void NodePool::Correct(const VerifierNode& node, const NodeDescription& said) {
  MutexLock lock(mu_);
  verifiers_.Correct(node, said);
  Assess();
}

absl::Status NodePool::CheckDrafters() const {
  MutexLock lock(mu_);
  absl::Status status;
  const auto drafters = drafters_.knowledge();
  for (const std::string& name : options_.drafters) {
    const bool has_address = std::any_of(
        drafters.begin(), drafters.end(),
        [&](const NodeKnowledge* drafter) { return drafter->name == name; });
    if (!has_address) {
      status = absl::UnavailableError(
          absl::StrCat("the drafter's name ", name, " has no address yet"));
    }
  }
  for (const NodeKnowledge* drafter : drafters) {
    if (drafter->state() == NodeState::kRefused) return drafter->fitness;
    if (drafter->answer.status() == NotAskedYet()) status = NotAskedYet();
  }
  for (const NodeKnowledge* verifier : verifiers_.knowledge()) {
    if (verifier->state() == NodeState::kRefused &&
        absl::IsUnimplemented(verifier->answer.status())) {
      return verifier->fitness;
    }
  }
  return status;
}

NodePool::Overview NodePool::Describe() const {
  MutexLock lock(mu_);
  Overview overview;
  for (const NodeKnowledge* verifier : verifiers_.knowledge()) {
    if (verifier->state() == NodeState::kReady) {
      overview.verifiers.push_back(*verifier->answer);
    } else if (verifier->state() == NodeState::kRefused) {
      overview.refused_verifiers.emplace_back(verifier->fitness.message());
    }
  }
  for (const NodeKnowledge* drafter : drafters_.knowledge()) {
    if (drafter->state() == NodeState::kReady) {
      overview.drafters.push_back(*drafter->answer);
    } else if (drafter->state() == NodeState::kRefused) {
      overview.refused_drafters.emplace_back(drafter->fitness.message());
    }
  }
  return overview;
}

int NodePool::CountVerifiers(NodeState state) const {
  MutexLock lock(mu_);
  return Count(verifiers_.knowledge(), state);
}

int NodePool::CountDrafters(NodeState state) const {
  MutexLock lock(mu_);
  return Count(drafters_.knowledge(), state);
}

}  // namespace outrider
