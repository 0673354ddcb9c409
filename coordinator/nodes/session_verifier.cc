// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_verifier.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/nodes/jittered_retry_delay.h"
#include "coordinator/nodes/session_attempts.h"
#include "coordinator/nodes/session_errors.h"
#include "coordinator/nodes/step_failure.h"
#include "coordinator/nodes/text_room.h"
#include "coordinator/peers/miss_recovery.h"
#include "core/base/node_drains.h"
#include "core/base/retry_delay.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kDescribeTimeout(5);
// A node whose connection broke answers at once, or is not there.
constexpr milliseconds kThereTimeout(500);
// An opening that has failed twice may itself be the cause. It is not
// sent to a third.
constexpr size_t kMaxFailures = 2;

// What a session answers itself in place of a node that would have room.
absl::Status RoomIsKept() {
  return WithJitteredRetryDelay(
      absl::ResourceExhaustedError(
          "room at the verifiers is kept for requests that came before: try "
          "again later"),
      std::chrono::seconds(1));
}

}  // namespace

SessionVerifier::SessionVerifier(SessionPool& pool, const SessionId& session,
                                 Seat<VerifierNode> seat,
                                 const NodeDescription& description)
    : pool_(pool),
      session_(session),
      seat_(pool, session, std::move(seat), description),
      at_seat_(pool, seat_),
      same_model_({.node = at_seat_,
                   .describe =
                       [this](Cancellation& cancellation) {
                         return seat_.node().stub->Describe(kDescribeTimeout,
                                                            cancellation);
                       },
                   .on_other =
                       [this](const ModelIdentity& model) {
                         pool_.Doubt(seat_.node(), model);
                       },
                   .model = seat_.description().identity()}) {}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::Verify(
    const VerifyCall& call, Cancellation& cancellation) {
  num_retries_ = 0;
  Reply reply = co_await Answer(call, cancellation);
  if (reply.ok()) reply->num_retries = num_retries_;
  if (reply.ok() && !std::holds_alternative<Miss>(reply->outcome)) {
    has_failed_ = false;
  }
  co_return reply;
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::Answer(
    const VerifyCall& call, Cancellation& cancellation) {
  if (!seat_.has_begun()) {
    Reply reply = co_await Open(call, cancellation);
    const bool is_missed =
        reply.ok() && std::holds_alternative<Miss>(reply->outcome);
    if (reply.ok() && !is_missed) seat_.set_begun();
    // What comes again, with fewer drafts, does not queue anew.
    if (!is_missed) place_.reset();
    co_return reply;
  }
  co_return co_await AskUntilAnswered(call, cancellation);
}

WaitingRoom::Guest SessionVerifier::AsGuest(const VerifyCall& call) const {
  using Kind = WaitingRoom::Kind;
  const Kind before = seat_.use().is_resumed ? Kind::kResumed : Kind::kNew;
  return {.kind = seat_.has_begun() ? Kind::kHeld : before,
          .at = seat_.has_begun() ? &seat_.node() : nullptr,
          .text_length = TextLengthOf(call)};
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::Open(
    const VerifyCall& call, Cancellation& cancellation) {
  WaitingRoom& room = pool_.waiting_room();
  for (uint64_t attempt = 0;; ++attempt) {
    Reply reply = co_await AskEach(call, cancellation);
    const absl::Status& status = reply.status();
    if (cancellation.cancelled()) co_return reply;
    if (absl::IsUnavailable(status)) {
      place_.reset();  // it does not wait for room
      co_return co_await AskUntilAnswered(call, cancellation);
    }
    if (absl::IsDeadlineExceeded(status) && !at_seat_.was_patient()) continue;
    // A pass fails for all that are in it: a stream goes on after one.
    const bool may_go_on =
        seat_.use().is_resumed && failed_.size() < kMaxFailures;
    if (may_go_on && IsFailure(status)) continue;
    if (!IsRefusal(status)) co_return reply;
    if (place_ == nullptr) place_ = room.Enter(AsGuest(call));
    if (place_ == nullptr) co_return reply;
    place_->WasRefusedBy(full_);
    // It costs nobody anything to look whether room is still kept.
    const auto delay = JitteredRetryDelay(status, session_, attempt);
    co_await place_->Wait(pool_.timer(), was_sent_ ? delay : delay / 10,
                          cancellation);
    // Who failed may be back, and have room.
    seat_.TakeOther(call, /*avoided=*/{}, /*even_doubtful=*/true);
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::AskEach(
    const VerifyCall& call, Cancellation& cancellation) {
  Nodes avoided;
  absl::Status refusal;
  full_.clear();
  was_sent_ = false;
  while (true) {
    co_await seat_.TakeTurn(call, cancellation);
    // They were made for another node, or for what it was before.
    if (!TakesDrafts(seat_.description(), call)) co_return ForgottenReply(call);
    VerifierNode& node = seat_.node();
    const bool is_for_other =
        pool_.waiting_room().IsKept(node, AsGuest(call), /*own=*/place_.get());
    // A node that was broken is probed by one session at a time.
    if (!is_for_other && !at_seat_.MayOpen()) {
      Seat<VerifierNode> left =
          seat_.TakeOther(call, avoided, /*even_doubtful=*/false);
      if (left != nullptr) {
        // Its place for suspects is nobody's now.
        if (seat_.is_suspect()) seat_.Leave(std::move(left), call);
        continue;
      }
    }
    Reply reply;
    if (is_for_other) {
      reply = RoomIsKept();
    } else {
      was_sent_ = true;
      reply = co_await AskHere(call, cancellation);
    }
    const absl::Status& status = reply.status();
    if (reply.ok() || cancellation.cancelled() || IsPoison(status)) {
      co_return reply;
    }
    avoided.push_back(&node);
    if (IsRefusal(status)) {
      // A node's own says when to ask it again.
      if (!is_for_other || refusal.ok()) refusal = status;
      full_.push_back(&node);
      seat_.GiveTurnBack();
    } else if (IsOfNode(status) && !absl::IsDeadlineExceeded(status)) {
      // One that is lost may still be when it comes back for room elsewhere.
      const bool is_lost_still =
          absl::IsUnavailable(status) && absl::c_linear_search(failed_, &node);
      if (!is_lost_still) failed_.push_back(&node);
      has_failed_ = has_failed_ || IsFailure(status);
      if (failed_.size() >= kMaxFailures) co_return reply;
    } else if (!ReasonOf(status).has_value()) {
      co_return reply;
    }
    if (Seat<VerifierNode> left =
            seat_.TakeOther(call, avoided, /*even_doubtful=*/true)) {
      if (!IsRefusal(status)) seat_.Leave(std::move(left), call);
      continue;
    }
    seat_.GiveTurnBack();
    if (!refusal.ok()) co_return refusal;
    co_return reply;
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::AskUntilAnswered(
    const VerifyCall& call, Cancellation& cancellation) {
  Attempts attempts(call);
  for (;; ++attempts.number) {
    if (attempts.is_open && seat_.node().link.is_leaving &&
        Move(call, MoveReason::kDraining)) {
      ++num_retries_;
      co_return ForgottenReply(call);
    }
    co_await seat_.TakeTurn(call, cancellation);
    if (!TakesDrafts(seat_.description(), call)) co_return ForgottenReply(call);
    Reply reply = co_await AskHere(call, cancellation);
    if (reply.ok() || cancellation.cancelled()) co_return reply;
    absl::Status status = reply.status();
    const Next next = co_await Recover(attempts, status, cancellation);
    if (next == Next::kEnd) co_return status;
    if (next == Next::kReopen && attempts.is_open) {
      co_return ForgottenReply(call);
    }
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::AskHere(
    const VerifyCall& call, Cancellation& cancellation) {
  for (bool is_first = true;; is_first = false) {
    Reply reply = co_await same_model_.Verify(call, cancellation);
    if (reply.ok()) {
      seat_.Answered(*reply);
    } else {
      ++num_retries_;
    }
    if (IsForGood(reply.status())) {
      co_return co_await ReconsiderRefusal(call, reply.status(), cancellation);
    }
    if (!absl::IsUnavailable(reply.status()) || cancellation.cancelled()) {
      co_return reply;
    }
    const bool was_connected = at_seat_.was_connected();
    // A connection may break, and the node be there: all of its sessions would
    // move away if they did not look.
    was_there_ = co_await IsThere(cancellation);
    if (was_there_) {
      if (!is_first) co_return reply;
      co_await seat_.TakeTurn(call, cancellation);
      continue;
    }
    if (was_connected && !seat_.node().link.is_leaving &&
        co_await seat_.IsConvictedByLoss(cancellation)) {
      co_return PoisonError();
    }
    co_return reply;
  }
}

Task<absl::StatusOr<VerifyReply>> SessionVerifier::ReconsiderRefusal(
    const VerifyCall& call, const absl::Status& refusal,
    Cancellation& cancellation) {
  if (TextLengthOf(call) <= RoomOf(seat_.description())) {
    // It would have been taken by the node that was asked last what it is: this
    // one may have come back with less memory, or for fewer drafts.
    const absl::StatusOr<NodeDescription> node =
        co_await seat_.node().stub->Describe(kThereTimeout, cancellation);
    if (!node.ok()) {
      co_return absl::UnavailableError(
          absl::StrCat("does not say why it refuses: ", refusal.message()));
    }
    pool_.Correct(seat_.node(), *node);
    OUTRIDER_CO_RETURN_IF_ERROR(same_model_.Check(node->identity(), call));
    seat_.Correct(*node);
  }
  const NodeDescription& node = seat_.description();
  if (TextLengthOf(call) > RoomOf(node)) {
    co_return OutgrownError(LengthOf(call), RoomOf(node));
  }
  if (!TakesDrafts(node, call)) co_return ForgottenReply(call);
  co_return refusal;
}

Task<bool> SessionVerifier::IsThere(Cancellation& cancellation) {
  const auto answer =
      co_await seat_.node().stub->Describe(kThereTimeout, cancellation);
  if (IsNodeDrains(answer.status())) seat_.node().link.is_leaving = true;
  co_return answer.ok();
}

bool SessionVerifier::Move(const VerifyCall& call, MoveReason reason,
                           const absl::Status& why) {
  if (!seat_.Move(call, reason, why)) return false;
  at_seat_.ForgetPatience();
  same_model_.Accept(seat_.description().numerics);
  return true;
}

}  // namespace outrider
