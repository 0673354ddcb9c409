// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/session_verifier.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/pool/node_pool.h"
#include "coordinator/pool/wait_time.h"
#include "coordinator/pool/waiting_room.h"
#include "core/base/log.h"
#include "core/base/retry_delay.h"
#include "core/rpc/sleep.h"

namespace outrider {
namespace {

// A request that two nodes have failed at may be what they fail of: it is not
// tried on a third.
constexpr size_t kMaxFailedNodes = 2;

// What tells of the node, not of the session or the load. INTERNAL may be
// either; the breaker opens at several in a row, and a session has one of them.
bool IsOfNode(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsInternal(status);
}

// Whether a session that was begun for one may go on with the other: how much
// room they have, for whom they share it, and how busy they are, is each node's
// own affair.
bool AreAlike(const NodeDescription& a, NodeDescription b) {
  b.device = a.device;
  b.build = a.build;
  b.kv_cache_tokens = a.kv_cache_tokens;
  b.kv_cache_bytes = a.kv_cache_bytes;
  b.prefix_cache = a.prefix_cache;
  b.activity = a.activity;
  return a == b;
}

}  // namespace

SessionVerifier::SessionVerifier(NodePool& pool, const SessionId& session,
                                 Seat<VerifierNode> seat,
                                 NodeDescription description)
    : pool_(pool),
      session_(session),
      seat_(std::move(seat)),
      description_(std::move(description)) {}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::Verify(
    const VerifyCall& call, Cancellation& cancellation) {
  if (is_open_) co_return co_await AskUntilAnswered(call, cancellation);
  opening_step_ = call.header.step;
  Reply reply = co_await Open(call, cancellation);
  is_open_ = reply.ok();
  co_return reply;
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::Open(
    const VerifyCall& call, Cancellation& cancellation) {
  std::unique_ptr<WaitingRoom::Place> place;
  for (uint64_t attempt = 0;; ++attempt) {
    Reply reply = co_await AskEach(call, cancellation);
    if (cancellation.cancelled()) co_return reply;
    if (absl::IsUnavailable(reply.status())) {
      co_return co_await AskUntilAnswered(call, cancellation);
    }
    if (!IsRefusal(reply.status())) co_return reply;
    if (place == nullptr) place = pool_.waiting_room().Enter();
    if (place == nullptr) co_return reply;
    co_await place->Wait(pool_.queue(),
                         WaitTime(reply.status(), session_, attempt),
                         cancellation);
    Move(/*refusing=*/{}, /*even_doubtful=*/true);
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::AskEach(
    const VerifyCall& call, Cancellation& cancellation) {
  Nodes refusing;
  absl::Status refusal;
  while (true) {
    // A node that was broken is probed by one session at a time.
    const bool is_allowed = seat_->breaker.Allow(CircuitBreaker::Clock::now());
    if (!is_allowed && Move(refusing, /*even_doubtful=*/false)) continue;
    Reply reply = co_await seat_->stub.Verify(call, cancellation);
    Report(reply.status(), cancellation);
    if (reply.ok() || cancellation.cancelled()) co_return reply;
    if (IsRefusal(reply.status())) {
      refusal = reply.status();
      refusing.push_back(seat_.get());
    } else if (IsOfNode(reply.status())) {
      failed_.push_back(seat_.get());
      if (failed_.size() == kMaxFailedNodes) co_return reply;
    } else {
      co_return reply;
    }
    if (Move(refusing, /*even_doubtful=*/true)) continue;
    if (!refusal.ok()) co_return refusal;
    co_return reply;
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::AskUntilAnswered(
    const VerifyCall& call, Cancellation& cancellation) {
  // About a second: a restarting process on the same address, or a broken
  // connection. Whoever is gone longer is reported.
  constexpr int kMaxBroken = 5;
  std::chrono::milliseconds pause(20);
  int num_broken = 0;
  for (uint64_t attempt = 0;; ++attempt) {
    Reply reply = co_await seat_->stub.Verify(call, cancellation);
    const absl::Status& status = reply.status();
    const bool is_broken =
        absl::IsUnavailable(status) && ++num_broken < kMaxBroken;
    if (cancellation.cancelled() || (!is_broken && !IsRefusal(status))) {
      Report(status, cancellation);
      co_return reply;
    }
    co_await Sleep(pool_.queue(),
                   is_broken ? pause : WaitTime(status, session_, attempt),
                   cancellation);
    if (is_broken) pause *= 3;
  }
}

void SessionVerifier::Report(const absl::Status& status,
                             const Cancellation& cancellation) {
  CircuitBreaker& breaker = seat_->breaker;
  if (status.ok()) {
    breaker.Success();
  } else if (cancellation.cancelled() || !IsOfNode(status)) {
    breaker.Abandon();
  } else if (breaker.Failure(CircuitBreaker::Clock::now())) {
    OUTRIDER_LOG(kWarning) << seat_->link.address << " fails: " << status;
  }
}

bool SessionVerifier::Move(const Nodes& refusing, bool even_doubtful) {
  const auto is_one_of = [](const Nodes& nodes, const VerifierNode& node) {
    return std::find(nodes.begin(), nodes.end(), &node) != nodes.end();
  };
  auto choice = pool_.ChooseVerifier(
      session_, [&](const VerifierNode& node, const NodeDescription& answer) {
        return !is_one_of(refusing, node) && !is_one_of(failed_, node) &&
               AreAlike(description_, answer);
      });
  if (choice.seat == nullptr || (choice.is_doubtful && !even_doubtful)) {
    return false;
  }
  std::swap(seat_, choice.seat);
  if (is_one_of(failed_, *choice.seat)) {
    pool_.releases().Release(std::move(choice.seat),
                             {.session = session_, .step = opening_step_});
  }
  return true;
}

Task<absl::StatusOr<NodeDescription>> SessionVerifier::Describe(
    std::chrono::milliseconds timeout, Cancellation& cancellation) {
  return seat_->stub.Describe(timeout, cancellation);
}

void SessionVerifier::Release(RequestHeader header) {
  if (opening_step_ == 0) return;
  pool_.releases().Release(std::move(seat_), std::move(header));
}

}  // namespace outrider
