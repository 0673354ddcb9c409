// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_drafters.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "coordinator/nodes/node_knowledge.h"
#include "coordinator/nodes/shared_stubs.h"
#include "core/base/retry_delay.h"
#include "core/sampling/draft.h"
#include "core/wire/node_calls.h"
#include "tests/support/loop_timer.h"

namespace outrider::testing {
namespace {

using std::chrono::milliseconds;

class DrafterStub final : public SharedDraftStub {
 public:
  DrafterStub(EventLoop& loop, DrafterProcess& process)
      : loop_(loop), process_(process) {}

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override {
    if (process_.is_silent) {
      co_await LoopTimer(loop_).Sleep(std::chrono::seconds(10), cancellation);
      co_return absl::DeadlineExceededError("is silent");
    }
    if (!process_.is_up) co_return absl::UnavailableError("refused");
    const bool is_ahead = call.max_outcomes > 0;
    if (process_.is_full || (process_.refuses_ahead && is_ahead)) {
      ++process_.num_refusals;
      co_return WithRetryDelay(absl::ResourceExhaustedError("is busy"),
                               milliseconds(500));
    }
    if (call.max_draft_tokens > process_.max_draft_tokens) {
      ++process_.num_refusals;
      co_return absl::InvalidArgumentError("too many drafts");
    }
    const RequestHeader& header = call.header;
    const int num_deaths = process_.num_deaths;
    const bool is_suspect = process_.suspects.contains(header.session);
    if (is_suspect) {
      process_.most_suspects_in_flight = std::max(
          process_.most_suspects_in_flight, ++process_.num_suspects_in_flight);
    }
    co_await loop_.Sleep(process_.pass);
    if (is_suspect) --process_.num_suspects_in_flight;
    DraftReply reply = {.header = {.session = header.session,
                                   .incarnation = header.incarnation,
                                   .step = header.step,
                                   .is_draining = process_.is_draining}};
    const bool is_known = !header.incarnation.is_none() &&
                          process_.live[header.session] == header.incarnation;
    if (process_.num_deaths == num_deaths && !is_known) {
      if (!header.incarnation.is_none()) {
        reply.outcome = Miss{};
        co_return reply;
      }
      reply.header.incarnation = process_.live[header.session] =
          Incarnation::Random();
    }
    const auto length = static_cast<int>(header.delta.length());
    if (process_.is_up && process_.poison == header.session &&
        length >= process_.poison_from) {
      Die();
    }
    if (process_.num_deaths != num_deaths) {
      process_.suspects.insert(header.session);
      co_return absl::UnavailableError("the connection broke");
    }
    process_.suspects.erase(header.session);
    reply.header.cached_length =
        length + std::max(0, call.max_draft_tokens - 1);
    reply.outcome =
        Draft::OneHot(length, TokenSeq(call.max_draft_tokens, /*token=*/1));
    co_return reply;
  }
  Task<absl::StatusOr<NodeDescription>> Describe(
      milliseconds timeout, Cancellation& cancellation) override {
    if (process_.is_silent) {
      co_await LoopTimer(loop_).Sleep(timeout, cancellation);
      co_return absl::DeadlineExceededError("is silent");
    }
    if (!process_.is_up) co_return absl::UnavailableError("refused");
    co_return NodeDescription{.vocab_size = 10,
                              .context_length = 100000,
                              .max_draft_tokens = process_.max_draft_tokens};
  }
  void Die() {
    process_.Die();
    loop_.After(milliseconds(300), [this] { process_.is_up = true; });
  }

 private:
  EventLoop& loop_;
  DrafterProcess& process_;
};

class NoCache final : public CacheStub {
  Task<void> Release(RequestHeader, Cancellation&) override { co_return; }
};

}  // namespace

DrafterPool::DrafterPool(EventLoop& loop, std::vector<FakeProcess>& verifiers,
                         std::vector<DrafterProcess>& drafters)
    : FakePool(loop, verifiers), loop_(loop), drafters_(drafters) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < drafters.size(); ++i) {
    addresses.push_back(absl::StrCat("2.2.2.", i, ":1"));
  }
  group_.SetAddresses("drafters", addresses);
  Ask();
  Look();
}

Task<void> DrafterPool::Learn(DrafterNode& node) {
  group_.Learn(node, co_await node.stub->Describe(milliseconds(1000), none_));
  AssessDrafters(group_.knowledge(), &verifier_);
}

std::unique_ptr<DrafterNode> DrafterPool::Make(const std::string& name,
                                               const std::string& address) {
  DrafterProcess& process = drafters_[num_made_++];
  return std::unique_ptr<DrafterNode>(new DrafterNode{
      .link = {.name = name,
               .address = address,
               .is_connected = [&process] { return process.is_up; }},
      .stub = std::make_unique<DrafterStub>(loop_, process),
      .cache = std::make_unique<NoCache>()});
}

}  // namespace outrider::testing
