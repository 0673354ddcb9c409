// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/session_verifier.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/peers/miss_recovery.h"
#include "coordinator/pool/node_pool.h"
#include "coordinator/pool/wait_time.h"
#include "coordinator/pool/waiting_room.h"
#include "core/base/log.h"
#include "core/base/retry_delay.h"
#include "core/rpc/sleep.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kDescribeTimeout(5);
// A request that two nodes have failed at may be what they fail of: it is not
// tried on a third.
constexpr size_t kMaxFailedNodes = 2;
// About a second: a restarting process on the same address, or a broken
// connection.
constexpr int kMaxBroken = 7;
// Of a session that holds, between two attempts.
constexpr milliseconds kFirstPause(20);
constexpr milliseconds kLongestPause(500);
// How long the model may be missing among those that are ready.
constexpr std::chrono::seconds kModelPatience(5);

// What tells of the node, not of the session or the load. INTERNAL may be
// either; the breaker opens at several in a row, and a session has one of them.
bool IsOfNode(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsInternal(status);
}

// Why a session that has begun cannot stay, if so.
std::optional<MoveReason> ReasonOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return MoveReason::kLost;
    case absl::StatusCode::kDeadlineExceeded:
      return MoveReason::kLate;
    case absl::StatusCode::kAborted:
      return MoveReason::kReplaced;
    default:
      return std::nullopt;
  }
}

// What is each node's own affair: how much room it has, for whom its sessions
// share it, and how busy it is.
NodeDescription WithoutOwn(NodeDescription node) {
  node.model_name.clear();
  node.device.clear();
  node.build.clear();
  node.kv_cache_tokens = 0;
  node.kv_cache_bytes = 0;
  node.prefix_cache.clear();
  node.activity = {};
  return node;
}

}  // namespace

SessionVerifier::SessionVerifier(NodePool& pool, const SessionId& session,
                                 Seat<VerifierNode> seat,
                                 NodeDescription description)
    : pool_(pool),
      session_(session),
      seat_(std::move(seat)),
      description_(WithoutOwn(std::move(description))),
      same_model_({.node = at_seat_,
                   .describe =
                       [this](Cancellation& cancellation) {
                         return seat_->stub.Describe(kDescribeTimeout,
                                                     cancellation);
                       },
                   .model = description_.identity()}) {}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::Verify(
    const VerifyCall& call, Cancellation& cancellation) {
  if (!has_begun_) {
    opening_step_ = call.header.step;
    Reply reply = co_await Open(call, cancellation);
    has_begun_ = reply.ok();
    co_return reply;
  }
  const bool is_open = !call.header.incarnation.is_none();
  if (is_open && seat_->link.is_leaving && Move(call, MoveReason::kDraining)) {
    co_return ForgottenReply(call);
  }
  co_return co_await AskUntilAnswered(call, cancellation);
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::Open(
    const VerifyCall& call, Cancellation& cancellation) {
  std::unique_ptr<WaitingRoom::Place> place;
  for (uint64_t attempt = 0;; ++attempt) {
    Reply reply = co_await AskEach(call, cancellation);
    const absl::Status& status = reply.status();
    if (cancellation.cancelled()) co_return reply;
    if (absl::IsUnavailable(status)) {
      co_return co_await AskUntilAnswered(call, cancellation);
    }
    if (absl::IsDeadlineExceeded(status) && !was_patient_) continue;
    if (!IsRefusal(status)) co_return reply;
    if (place == nullptr) place = pool_.waiting_room().Enter();
    if (place == nullptr) co_return reply;
    co_await place->Wait(pool_.queue(), WaitTime(status, session_, attempt),
                         cancellation);
    TakeOther(/*refusing=*/{}, /*even_doubtful=*/true);
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::AskEach(
    const VerifyCall& call, Cancellation& cancellation) {
  Nodes refusing;
  absl::Status refusal;
  while (true) {
    // A node that was broken is probed by one session at a time.
    const bool is_allowed = seat_->breaker.Allow(Clock::now());
    if (!is_allowed && TakeOther(refusing, /*even_doubtful=*/false)) continue;
    Reply reply = co_await same_model_.Verify(call, cancellation);
    const absl::Status& status = reply.status();
    if (reply.ok() || cancellation.cancelled()) co_return reply;
    if (IsRefusal(status) || absl::IsDeadlineExceeded(status)) {
      if (IsRefusal(status)) refusal = status;
      refusing.push_back(seat_.get());
    } else if (IsOfNode(status)) {
      failed_.push_back(seat_.get());
      if (failed_.size() == kMaxFailedNodes) co_return reply;
    } else {
      co_return reply;
    }
    if (Seat<VerifierNode> left = TakeOther(refusing, /*even_doubtful=*/true)) {
      if (!IsRefusal(status)) Leave(std::move(left), call);
      continue;
    }
    if (!refusal.ok()) co_return refusal;
    co_return reply;
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::AskUntilAnswered(
    const VerifyCall& call, Cancellation& cancellation) {
  const bool is_open = !call.header.incarnation.is_none();
  std::optional<Held> held;
  std::optional<Clock::time_point> model_gone_since;
  milliseconds pause = kFirstPause;
  int num_broken = 0;
  for (uint64_t attempt = 0;; ++attempt) {
    if (is_moved_ && !turn_) co_await TakeTurn(call, cancellation);
    Reply reply = co_await same_model_.Verify(call, cancellation);
    const absl::Status& status = reply.status();
    if (reply.ok() && is_moved_) Arrived(*reply);
    if (reply.ok() || cancellation.cancelled()) co_return reply;
    if (IsRefusal(status)) {
      turn_ = {};
      co_await Sleep(pool_.queue(), WaitTime(status, session_, attempt),
                     cancellation);
      continue;
    }
    const std::optional<MoveReason> reason = ReasonOf(status);
    if (!reason.has_value()) co_return reply;
    // A connection may break, and the node be there: all of its sessions would
    // move away if they did not give it the time to connect again.
    if (absl::IsUnavailable(status) && ++num_broken == 1) {
      co_await Sleep(pool_.queue(), kFirstPause, cancellation);
      continue;
    }
    if (has_begun_ && Move(call, *reason, status)) {
      if (is_open) co_return ForgottenReply(call);
      num_broken = 0;
      continue;
    }
    turn_ = {};
    if (*reason == MoveReason::kLate) {
      if (!has_begun_ && was_patient_) co_return reply;
      continue;  // with more patience
    }
    const bool is_given_up = !has_begun_ || moves_.IsReached(Clock::now());
    if (is_given_up && num_broken >= kMaxBroken) co_return reply;
    if (!IsModelGone()) {
      model_gone_since.reset();
    } else if (!model_gone_since.has_value()) {
      model_gone_since = Clock::now();
    }
    if (model_gone_since.has_value() &&
        (absl::IsAborted(status) ||
         Clock::now() - *model_gone_since > kModelPatience)) {
      co_return absl::AbortedError(
          absl::StrCat("only other models are left: ", status.message()));
    }
    if (!held.has_value()) {
      OUTRIDER_LOG(kWarning, FieldsOf(call))
          << "holds, as no other verifier is ready: " << status;
      held.emplace(pool_.moves());
    }
    co_await Sleep(pool_.queue(), pause, cancellation);
    pause = std::min(2 * pause, kLongestPause);
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::AskNode(
    const VerifyCall& call, Cancellation& cancellation) {
  VerifierNode& node = *seat_;
  const auto num_appended =
      static_cast<int>(call.header.delta.append_tokens.size());
  node.pace.Begin(num_appended);
  const milliseconds longest = node.stub.TimeoutOf(call);
  const std::optional<milliseconds> limit =
      pool_.HasSeveralVerifiers() && !moves_.IsReached(Clock::now())
          ? node.pace.Limit()
          : std::nullopt;
  const milliseconds timeout =
      std::min(longest, limit.value_or(longest) * patience_);
  was_patient_ = timeout == longest;
  const Clock::time_point begin = Clock::now();
  Reply reply = co_await node.stub.Verify(call, timeout, cancellation);
  const auto took = std::chrono::ceil<milliseconds>(Clock::now() - begin);
  if (reply.ok() && !std::holds_alternative<Miss>(reply->outcome)) {
    node.pace.Answered(num_appended, num_appended - reply->header.reused_length,
                       reply->header.compute_seconds, took);
  } else if (absl::IsDeadlineExceeded(reply.status())) {
    node.pace.Late(num_appended, took);
  } else {
    node.pace.Failed(num_appended);
  }
  if (!absl::IsDeadlineExceeded(reply.status())) {
    patience_ = 1;
  } else if (!was_patient_) {
    patience_ *= 4;
  }
  if (reply.ok() && reply->header.is_draining) node.link.is_leaving = true;
  Report(reply.status(), cancellation);
  co_return reply;
}

void SessionVerifier::Report(const absl::Status& status,
                             const Cancellation& cancellation) {
  CircuitBreaker& breaker = seat_->breaker;
  if (status.ok()) {
    breaker.Success();
  } else if (cancellation.cancelled() || !IsOfNode(status)) {
    breaker.Abandon();
  } else if (breaker.Failure(Clock::now())) {
    OUTRIDER_LOG(kWarning) << seat_->link.address << " fails: " << status;
  }
}

Seat<VerifierNode> SessionVerifier::TakeOther(const Nodes& refusing,
                                              bool even_doubtful) {
  const auto is_one_of = [](const Nodes& nodes, const VerifierNode& node) {
    return std::find(nodes.begin(), nodes.end(), &node) != nodes.end();
  };
  auto choice = pool_.ChooseVerifier(
      session_, [&](const VerifierNode& node, const NodeDescription& answer) {
        return !is_one_of(refusing, node) && !is_one_of(failed_, node) &&
               WithoutOwn(answer) == description_;
      });
  if (choice.seat == nullptr || (choice.is_doubtful && !even_doubtful)) {
    return nullptr;
  }
  return std::exchange(seat_, std::move(choice.seat));
}

bool SessionVerifier::Move(const VerifyCall& call, MoveReason reason,
                           const absl::Status& why) {
  const Clock::time_point now = Clock::now();
  if (reason == MoveReason::kLost || reason == MoveReason::kLate) {
    seat_->PutOut(now);
  }
  if (moves_.IsReached(now)) return false;
  auto choice = ChooseOther(PromiseOf(call.sampling, call.rule));
  if (choice.seat == nullptr) return false;
  MoveGate::Turn turn;
  if (reason == MoveReason::kDraining) {
    // It goes on where it is until the other has time for it.
    turn = choice.seat->gate.Enter(now);
    if (!turn) return false;
  }
  OUTRIDER_LOG(kInfo, FieldsOf(call))
      << "moves from verifier " << seat_->link.address << " to "
      << choice.seat->link.address << ", as that is " << NameOf(reason)
      << (why.ok() ? "" : ": ") << (why.ok() ? "" : why.ToString());
  ++pool_.moves().of_verifiers[static_cast<int>(reason)];
  const std::string& numerics = choice.description.numerics;
  if (numerics != same_model_.model().numerics) {
    ++pool_.moves().num_to_other_kernels;
    same_model_.Accept(numerics);
  }
  moves_.Moved(now);
  turn_ = std::move(turn);
  is_moved_ = true;
  Seat<VerifierNode> left = std::exchange(seat_, std::move(choice.seat));
  if (left.get() != seat_.get()) Leave(std::move(left), call);
  return true;
}

NodeGroup<VerifierNode>::Choice SessionVerifier::ChooseOther(
    Sameness sameness) {
  const auto choose = [&](Sameness wanted, bool is_own) {
    return pool_.ChooseVerifier(
        session_, [&](const VerifierNode& node, const NodeDescription& answer) {
          return (&node == seat_.get()) == is_own && IsAlike(answer, wanted);
        });
  };
  auto choice = choose(sameness, /*is_own=*/false);
  if (choice.seat == nullptr && sameness == Sameness::kBits &&
      choose(sameness, /*is_own=*/true).seat == nullptr) {
    choice = choose(Sameness::kLaw, /*is_own=*/false);
    if (choice.seat == nullptr) choice = choose(Sameness::kLaw, true);
  }
  // What is not there either would only cost the session one of its moves.
  return choice.is_doubtful ? NodeGroup<VerifierNode>::Choice()
                            : std::move(choice);
}

bool SessionVerifier::IsAlike(const NodeDescription& node,
                              Sameness sameness) const {
  NodeDescription wanted = description_;
  NodeDescription other = WithoutOwn(node);
  wanted.numerics = same_model_.model().numerics;
  if (sameness == Sameness::kLaw) wanted.numerics = other.numerics;
  return other == wanted;
}

bool SessionVerifier::IsModelGone() {
  return pool_.HasVerifier() &&
         pool_.ChooseVerifier(session_, [&](const VerifierNode&,
                                            const NodeDescription& answer) {
                return IsAlike(answer, Sameness::kLaw);
              }).seat == nullptr;
}

Task<void> SessionVerifier::TakeTurn(const VerifyCall& call,
                                     Cancellation& cancellation) {
  while (!cancellation.cancelled()) {
    const Clock::time_point now = Clock::now();
    turn_ = seat_->gate.Enter(now);
    if (turn_ || TakeTurnElsewhere(call, now)) co_return;
    co_await Sleep(pool_.queue(), seat_->gate.Wait(now), cancellation);
  }
}

bool SessionVerifier::TakeTurnElsewhere(const VerifyCall& call,
                                        Clock::time_point now) {
  auto choice = pool_.ChooseVerifier(
      session_, [&](const VerifierNode& node, const NodeDescription& answer) {
        return &node != seat_.get() && node.gate.IsOpen(now) &&
               IsAlike(answer, Sameness::kBits);
      });
  if (choice.seat == nullptr || choice.is_doubtful) return false;
  turn_ = choice.seat->gate.Enter(now);
  if (!turn_) return false;
  Leave(std::exchange(seat_, std::move(choice.seat)), call);
  return true;
}

void SessionVerifier::Arrived(const VerifyReply& reply) {
  if (std::holds_alternative<Miss>(reply.outcome)) return;
  is_moved_ = false;
  turn_.End(std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(reply.header.compute_seconds)));
}

void SessionVerifier::Leave(Seat<VerifierNode> seat, const VerifyCall& call) {
  pool_.releases().Release(std::move(seat),
                           {.session = session_,
                            .incarnation = call.header.incarnation,
                            .step = call.header.step});
}

LogFields SessionVerifier::FieldsOf(const VerifyCall& call) const {
  return {{"request_id", call.log_ids.request_id},
          {"session", session_.ShortHex()}};
}

void SessionVerifier::Release(RequestHeader header) {
  if (opening_step_ == 0) return;
  turn_ = {};
  pool_.releases().Release(std::move(seat_), std::move(header));
}

}  // namespace outrider
