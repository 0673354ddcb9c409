// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_SCRIPTED_DRAFTER_H_
#define OUTRIDER_TESTS_SUPPORT_SCRIPTED_DRAFTER_H_

#include <algorithm>
#include <coroutine>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/peers/node_stub.h"

namespace outrider::testing {

// A drafter that answers at once, or when it is told to.
class ScriptedDrafter final : public DraftStub {
 public:
  static constexpr TokenId kInTurn = 1;  // all that it drafts for a round

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override {
    calls.push_back(call);
    ++num_under_way;
    if (is_held) {
      cancellation.OnCancel([this] { is_cancelled = true; });
      co_await Hold{*this};
    }
    --num_under_way;
    if (cancellation.cancelled()) co_return absl::CancelledError("given up");
    if (!status.ok()) co_return status;
    if (call.max_outcomes > 0 && !ahead_status.ok()) co_return ahead_status;
    co_return Reply(call);
  }
  // Answers the call that is held.
  void Release() { std::exchange(held_, {}).resume(); }

  // Those that asked for what may follow drafts in flight.
  std::vector<DraftCall> ahead() const {
    std::vector<DraftCall> found;
    for (const DraftCall& call : calls) {
      if (call.max_outcomes > 0) found.push_back(call);
    }
    return found;
  }

  std::vector<DraftCall> calls;
  absl::Status status;
  absl::Status ahead_status;  // of calls for what may follow drafts in flight
  double compute_seconds = 0;
  bool misses = false;  // every call
  bool is_held = false;
  bool is_cancelled = false;
  int num_under_way = 0;
  // What it drafts for, each a draft of the token 50 + its place.
  std::vector<std::pair<int, TokenId>> outcomes;

 private:
  struct Hold {
    ScriptedDrafter& drafter;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      drafter.held_ = waiter;
    }
    void await_resume() const {}
  };

  DraftReply Reply(const DraftCall& call) const {
    DraftReply reply = {.header = {.session = call.header.session,
                                   .incarnation = call.header.incarnation,
                                   .step = call.header.step,
                                   .compute_seconds = compute_seconds}};
    if (reply.header.incarnation.is_none()) {
      reply.header.incarnation = Incarnation::Random();
    }
    const auto length = static_cast<int>(call.header.delta.length());
    const int k = call.max_draft_tokens;
    if (misses) {
      reply.outcome = Miss{MissReason::kUnknownIncarnation};
    } else if (call.max_outcomes == 0) {
      reply.header.cached_length = length + std::max(0, k - 1);
      reply.outcome = outrider::Draft::OneHot(length, TokenSeq(k, kInTurn));
    } else {
      reply.header.cached_length =
          length + static_cast<int>(call.in_flight_tokens.size());
      reply.outcome = outrider::Draft::None(length);
      AddOutcomes(length, k, reply);
    }
    return reply;
  }
  void AddOutcomes(int length, int k, DraftReply& reply) const {
    TokenId token = 50;
    for (const auto& [num_accepted, next] : outcomes) {
      reply.outcomes.push_back(
          {.num_accepted = num_accepted,
           .next_token = next,
           .draft = outrider::Draft::OneHot(length + num_accepted + 1,
                                            TokenSeq(k, token++))});
    }
  }

  std::coroutine_handle<> held_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_SCRIPTED_DRAFTER_H_
