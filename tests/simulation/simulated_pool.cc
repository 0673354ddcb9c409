// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulated_pool.h"

#include <chrono>
#include <map>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/nodes/text_room.h"
#include "core/base/node_drains.h"
#include "core/base/retry_delay.h"
#include "tests/simulation/linked_drafter.h"
#include "tests/simulation/ways.h"
#include "tests/support/in_process_stubs.h"

namespace outrider::testing {
namespace {

using std::chrono::milliseconds;

constexpr char kVerifiers[] = "verifiers:1";
constexpr char kDrafters[] = "drafters:1";
constexpr milliseconds kAskTimeout(1000);
using VerifierWays = Ways<Cluster::Verifier>;

Coverage::Event EventOf(const absl::StatusOr<VerifyReply>& reply,
                        bool is_replaced) {
  using Event = Coverage::Event;
  if (!reply.ok()) {
    if (absl::IsCancelled(reply.status())) return Event::kCancelled;
    if (IsRefusal(reply.status())) return Event::kRefused;
    if (absl::IsUnavailable(reply.status())) return Event::kBroken;
    if (absl::IsDeadlineExceeded(reply.status())) return Event::kLate;
    return Event::kFailed;
  }
  if (std::holds_alternative<Miss>(reply->outcome)) return Event::kMissed;
  if (is_replaced) return Event::kReplaced;
  return reply->header.is_draining ? Event::kDraining : Event::kAnswered;
}

class LinkedVerifier final : public SharedVerifyStub {
 public:
  LinkedVerifier(Cluster& cluster, SimulatedPool& pool,
                 std::shared_ptr<VerifierWays> ways)
      : cluster_(cluster), pool_(pool), ways_(std::move(ways)) {}

  Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, milliseconds timeout,
      Cancellation& cancellation) override {
    const int index = ways_->way().index;
    const SessionId session = call.header.session;
    SessionWatch& watch = cluster_.watches[session];
    if (!watch.Says(call.header.step, ContentDigest(call))) {
      cluster_.Report("one step has said two things");
    }
    if (StaysForNothing(call, watch)) {
      cluster_.Report("a session stays where it drains");
    }
    const Coverage::State state = watch.StateAt(index, call.header);
    absl::StatusOr<VerifyReply> reply =
        co_await ways_->Of(session).Ask(call, timeout, cancellation);
    const Coverage::Event event =
        EventOf(reply, ways_->way().node.is_other() != watch.is_other_model);
    cluster_.coverage.Saw(state, event);
    if (event == Coverage::Event::kRefused) ++cluster_.stats.num_refusals;
    if (absl::IsInvalidArgument(reply.status())) {
      ++cluster_.stats.num_overdrafts;
    }
    if (reply.ok()) {
      if (event != Coverage::Event::kMissed) watch.node = index;
    } else {
      watch.has_failed = true;
    }
    if (reply.ok() && cluster_.mistake == Mistake::kNamesNoModel) {
      reply->model.reset();
    }
    if (reply.ok() && reply->header.is_draining) {
      watch.leaving = index;
      watch.leaving_life = ways_->way().node.num_lives();
      if (cluster_.mistake == Mistake::kIgnoresDrains) {
        reply->header.is_draining = false;
      }
    }
    co_return reply;
  }
  milliseconds TimeoutOf(const VerifyCall&) const override {
    return kStepTimeout;
  }
  Task<absl::StatusOr<bool>> Isolate(const SessionId& session,
                                     milliseconds timeout,
                                     Cancellation&) override {
    if (cluster_.mistake == Mistake::kIsolatesNobody) co_return true;
    co_return co_await SimulatedStub<Cluster::Verifier>::Isolate(
        ways_->way(), session, timeout);
  }
  Task<absl::StatusOr<NodeDescription>> Describe(milliseconds timeout,
                                                 Cancellation&) override {
    auto answer = co_await SimulatedStub<Cluster::Verifier>::Describe(
        ways_->way(), timeout);
    if (cluster_.mistake == Mistake::kIgnoresDrains &&
        IsNodeDrains(answer.status())) {
      answer = absl::UnavailableError("it shuts down");
    }
    co_return answer;
  }

 private:
  // Whether it knows that this verifier drains, has not moved before, and all
  // that could take it would at once. Some have no room for so long a text.
  bool StaysForNothing(const VerifyCall& call, const SessionWatch& watch) {
    if (call.header.incarnation.is_none() || watch.has_failed ||
        watch.leaving != ways_->way().index ||
        watch.leaving_life != ways_->way().node.num_lives() ||
        !ways_->way().node.is_draining()) {
      return false;
    }
    bool is_any_shut = false;
    const auto other = pool_.ChooseVerifier(
        call.header.session,
        [&](const VerifierNode& node, const NodeDescription& answer) {
          if (node.stub.get() == this) return false;
          is_any_shut = is_any_shut || node.is_doubtful() ||
                        !node.gate.IsOpen(cluster_.loop.now());
          return answer.identity() ==
                     cluster_.IdentityOf(watch.is_other_model) &&
                 RoomOf(answer) >= TextLengthOf(call);
        });
    return other.seat != nullptr && !other.is_doubtful && !is_any_shut;
  }

  Cluster& cluster_;
  SimulatedPool& pool_;
  const std::shared_ptr<VerifierWays> ways_;
};

template <typename Node>
class LinkedCache final : public CacheStub {
 public:
  explicit LinkedCache(std::shared_ptr<Ways<Node>> ways)
      : ways_(std::move(ways)) {}
  Task<void> Release(RequestHeader header, Cancellation&) override {
    ways_->Of(header.session).Release(header);
    co_return;
  }

 private:
  const std::shared_ptr<Ways<Node>> ways_;
};

// Addresses are "0:1", "1:1" and so on.
std::vector<std::string> Addresses(size_t count) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < count; ++i) addresses.push_back(absl::StrCat(i, ":1"));
  return addresses;
}
size_t IndexOf(const std::string& address) { return std::stoul(address); }

template <typename NodeType, typename Stub, typename Node>
std::unique_ptr<NodeType> LinkTo(Cluster& cluster, SimulatedPool& pool,
                                 Node& node, int index, const std::string& name,
                                 const std::string& address) {
  const auto ways = std::make_shared<Ways<Node>>(cluster, node, index);
  return std::unique_ptr<NodeType>(new NodeType{
      .link = {.name = name,
               .address = address,
               .is_connected =
                   [&cluster, &node] {
                     return !node.is_down() &&
                            cluster.mistake != Mistake::kCountsNoSuspects;
                   }},
      .stub = std::make_unique<Stub>(cluster, pool, ways),
      .cache = std::make_unique<LinkedCache<Node>>(ways)});
}

}  // namespace

SimulatedPool::SimulatedPool(Cluster& cluster)
    : timer_(cluster.loop),
      verifiers_({kVerifiers},
                 [&](const std::string& name, const std::string& address) {
                   const size_t i = IndexOf(address);
                   return LinkTo<VerifierNode, LinkedVerifier>(
                       cluster, *this, *cluster.verifiers[i],
                       Cluster::kFirstVerifier + static_cast<int>(i), name,
                       address);
                 }),
      drafters_({kDrafters},
                [&](const std::string& name, const std::string& address) {
                  const size_t i = IndexOf(address);
                  return LinkTo<DrafterNode, LinkedDrafter>(
                      cluster, *this, *cluster.drafters[i], static_cast<int>(i),
                      name, address);
                }) {
  verifiers_.SetAddresses(kVerifiers, Addresses(cluster.verifiers.size()));
  drafters_.SetAddresses(kDrafters, Addresses(cluster.drafters.size()));
  // They have all been asked before the run begins.
  for (VerifierNode* node : verifiers_.TakeToAsk()) {
    cluster.verifiers[IndexOf(node->link.address)]->Describe(
        [&](auto answer) { verifiers_.Learn(*node, std::move(answer)); });
    if (cluster.mistake == Mistake::kShutsGates) {
      shut_.push_back(node->gate.Enter(1, cluster.loop.now()));
    }
  }
  for (DrafterNode* node : drafters_.TakeToAsk()) {
    cluster.drafters[IndexOf(node->link.address)]->Describe(
        [&](auto answer) { drafters_.Learn(*node, std::move(answer)); });
  }
  Assess();
}

void SimulatedPool::AskAll() {
  for (VerifierNode* node : verifiers_.TakeToAsk()) {
    StartDetached(Ask(*node, verifiers_));
  }
  for (DrafterNode* node : drafters_.TakeToAsk()) {
    StartDetached(Ask(*node, drafters_));
  }
}

void SimulatedPool::AskQuiet() {
  const auto of_drafters = drafters_.Listen();
  const auto of_verifiers = verifiers_.Listen();
  for (VerifierNode* node : verifiers_.TakeQuiet(of_drafters.is_any_quiet)) {
    StartDetached(Ask(*node, verifiers_));
  }
  for (DrafterNode* node :
       drafters_.TakeQuiet(of_verifiers.is_any_quiet, of_verifiers.last)) {
    StartDetached(Ask(*node, drafters_));
  }
}

template <typename NodeType>
Task<void> SimulatedPool::Ask(NodeType& node, NodeGroup<NodeType>& group) {
  auto answer = co_await node.stub->Describe(kAskTimeout, never_);
  group.Learn(node, std::move(answer));
  Assess();
}

void SimulatedPool::Assess() {
  AssessVerifiers(verifiers_.knowledge(), /*terms=*/{}, tokenizer_hash_);
  num_ready_ = verifiers_.CountReady();
  verifiers_.FindOthers();
  const NodeDescription* first = nullptr;
  for (const NodeKnowledge* node : verifiers_.knowledge()) {
    if (node->ready() && first == nullptr) first = &*node->answer;
  }
  AssessDrafters(drafters_.knowledge(), first);
}

}  // namespace outrider::testing
