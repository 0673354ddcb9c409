// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_drafter.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/jittered_retry_delay.h"
#include "core/base/log.h"
#include "core/base/retry_delay.h"

namespace outrider {
namespace {

// Rounds are more frequent than news of nodes.
constexpr std::chrono::milliseconds kLookPeriod(50);

// How long a session drafts nothing after a refusal, before which it had so
// many in a row. A drafter that is full lets a round wait before it refuses, so
// that what is refused again and again asks less and less often.
std::chrono::milliseconds PauseAfter(const absl::Status& refusal,
                                     const SessionId& session, int num_before,
                                     uint64_t attempt) {
  constexpr int kMostDoublings = 4;
  const auto told = JitteredRetryDelay(refusal, session, attempt);
  const auto longer = told * (1 << std::min(num_before, kMostDoublings));
  return std::max(told, std::min(longer, kLongestDelay));
}

}  // namespace

SessionDrafter::SessionDrafter(SessionPool& pool, const SessionId& session,
                               NodeGroup<DrafterNode>::Choice choice)
    : pool_(pool),
      session_(session),
      seat_(std::move(choice.seat)),
      description_(std::move(choice.description)) {}

std::optional<OptionalDraftClient::Drafter> SessionDrafter::Choose(
    Session& session, const DraftOptions& drafting, Schedule schedule) {
  if (num_lost_ >= kMaxLost) return std::nullopt;
  const std::optional<MoveReason> reason = ReasonToMove();
  if (const Clock::time_point now = Clock::now();
      reason.has_value() && now >= next_look_) {
    next_look_ = now + kLookPeriod;
    auto choice = pool_.ChooseDrafter(
        session_, [&](const DrafterNode& node, const NodeDescription& answer) {
          return MayGoOnAt(node, answer, *reason);
        });
    if (choice.seat != nullptr && !choice.is_doubtful) {
      Move(session, *reason, std::move(choice));
    }
  }
  if (seat_ == nullptr || is_other_) return std::nullopt;
  if (!client_.has_value()) {
    client_.emplace(*this,
                    NodeDraftClient::Options{
                        .context_length = description_.context_length,
                        .max_draft_tokens = description_.max_draft_tokens,
                        .max_outcomes = description_.max_outcomes,
                        .drafting = drafting});
    const ModelIdentity drafter = description_.identity();
    control_ = &seat_->controls.Of({.drafter = drafter,
                                    .rule = session.rule(),
                                    .sampling = session.sampling(),
                                    .drafting = drafting,
                                    .schedule = schedule});
  }
  return OptionalDraftClient::Drafter{
      .node = *client_, .breaker = seat_->breaker, .control = *control_};
}

std::optional<MoveReason> SessionDrafter::ReasonToMove() const {
  if (seat_ == nullptr) return MoveReason::kFound;
  if (is_other_) return MoveReason::kReplaced;
  if (seat_->link.is_leaving) return MoveReason::kDraining;
  if (has_failed_ || seat_->is_doubtful()) return MoveReason::kLost;
  if (is_in_doubt_) return MoveReason::kReplaced;
  return std::nullopt;
}

bool SessionDrafter::MayGoOnAt(const DrafterNode& node,
                               const NodeDescription& answer,
                               MoveReason reason) const {
  if (is_other_) return true;
  const bool is_own = &node == seat_.get();
  if (reason != MoveReason::kReplaced) return !is_own;
  // What it refused may be the session's own fault: no other is tried with it.
  return is_own && (answer.max_draft_tokens != description_.max_draft_tokens ||
                    answer.max_outcomes != description_.max_outcomes ||
                    answer.context_length != description_.context_length);
}

void SessionDrafter::Move(Session& session, MoveReason reason,
                          NodeGroup<DrafterNode>::Choice choice) {
  const std::string& address = choice.seat->link.address;
  OUTRIDER_LOG(kInfo, {{"request_id", session.log_ids().request_id},
                       {"session", session_.ShortHex()}})
      << (seat_ == nullptr
              ? absl::StrCat("drafter ", address, " is found for it")
              : absl::StrCat("moves from drafter ", seat_->link.address, " to ",
                             address, ", as that is ", NameOf(reason)));
  ++pool_.moves().of_drafters[static_cast<int>(reason)];
  if (seat_ != nullptr)
    Release(session.AdvisoryHeader(session.drafter_cache()));
  session.drafter_cache().Forget();
  seat_ = std::move(choice.seat);
  description_ = std::move(choice.description);
  client_.reset();
  is_other_ = false;
  is_in_doubt_ = false;
  has_failed_ = false;
  was_asked_ = false;
  refusal_ = {};
  ahead_refusal_ = {};
}

Task<absl::StatusOr<DraftReply>> SessionDrafter::Draft(
    const DraftCall& call, Cancellation& cancellation) {
  const bool is_ahead = call.max_outcomes > 0;
  const Clock::time_point now = Clock::now();
  if (now < refusal_.until) co_return refusal_.status;
  if (is_ahead && now < ahead_refusal_.until) co_return ahead_refusal_.status;
  const SuspectPlaces::Place place =
      num_lost_ > 0 ? seat_->suspects.Take() : SuspectPlaces::Place();
  if (num_lost_ > 0 && !place) {
    refusal_.status = WithRetryDelay(
        absl::ResourceExhaustedError(
            "others are tried first, as a drafter was lost under them"),
        kLookPeriod);
    refusal_.until = now + kLookPeriod;
    co_return refusal_.status;
  }
  was_asked_ = true;
  const bool was_connected = seat_->link.is_connected();
  absl::StatusOr<DraftReply> reply = co_await Ask(call, cancellation);
  Count(call, reply, was_connected);
  if (reply.ok() && reply->header.is_draining) seat_->link.is_leaving = true;
  if (reply.ok() && reply->model.has_value() &&
      *reply->model != description_.identity()) {
    // What it takes, and whether it fits, is no longer what is known of it.
    is_other_ = true;
    pool_.Doubt(*seat_, *reply->model);
    co_return absl::AbortedError("the drafter was replaced by another one");
  }
  has_failed_ = absl::IsUnavailable(reply.status()) ||
                absl::IsDeadlineExceeded(reply.status());
  is_in_doubt_ = absl::IsInvalidArgument(reply.status());
  Refusal& refusal = is_ahead ? ahead_refusal_ : refusal_;
  if (reply.ok()) refusal.num = 0;
  if (IsRefusal(reply.status())) {
    // Member by member: assigned at once, as a braced temporary of this
    // coroutine, it was lost where gcc 12 had compiled it.
    refusal.status = reply.status();
    refusal.until = Clock::now() + PauseAfter(refusal.status, session_,
                                              refusal.num, num_refusals_++);
    ++refusal.num;
  }
  co_return reply;
}

void SessionDrafter::Count(const DraftCall& call,
                           const absl::StatusOr<DraftReply>& reply,
                           bool was_connected) {
  if (reply.ok()) {
    // A miss has computed nothing that the node could have died of.
    if (!std::holds_alternative<Miss>(reply->outcome)) num_lost_ = 0;
    return;
  }
  if (!absl::IsUnavailable(reply.status()) || !was_connected ||
      seat_->link.is_leaving || ++num_lost_ < kMaxLost) {
    return;
  }
  ++pool_.moves().num_undrafted;
  OUTRIDER_LOG(kWarning, {{"request_id", call.log_ids.request_id},
                          {"session", session_.ShortHex()}})
      << "drafts no more: two drafters were lost under its calls, the last at "
      << seat_->link.address << ": " << reply.status();
}

Task<absl::StatusOr<DraftReply>> SessionDrafter::Ask(
    const DraftCall& call, Cancellation& cancellation) {
  Pulse& pulse = seat_->link.pulse;
  // A node that answers nothing at all has failed, whatever it drafts.
  Pulse::Call waiting(pulse, cancellation);
  absl::StatusOr<DraftReply> reply =
      co_await seat_->stub->Draft(call, waiting.cancellation());
  if (!reply.ok() && waiting.is_given_up()) {
    co_return absl::DeadlineExceededError("the drafter answers nothing at all");
  }
  if (reply.ok()) pulse.Heard(Clock::now());
  co_return reply;
}

void SessionDrafter::Release(RequestHeader header) {
  if (was_asked_) pool_.releases().Release(std::move(seat_), std::move(header));
}

}  // namespace outrider
