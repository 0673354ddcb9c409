// SPDX-License-Identifier: Apache-2.0
// What follows a step that a verifier did not answer: the session goes
// elsewhere, waits, or ends.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/nodes/jittered_retry_delay.h"
#include "coordinator/nodes/session_attempts.h"
#include "coordinator/nodes/session_errors.h"
#include "coordinator/nodes/session_verifier.h"
#include "coordinator/nodes/step_failure.h"
#include "core/base/log.h"
#include "core/base/retry_delay.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

// So many attempts take about a second: a process restarts on the same address,
// or a connection has broken.
constexpr int kMaxBroken = 7;
// A session that holds pauses no longer between two attempts.
constexpr milliseconds kLongestPause(500);
// How long none of those that are ready may be fit to go on with it.
constexpr std::chrono::seconds kUnservedPatience(5);

}  // namespace

Task<SessionVerifier::Next> SessionVerifier::Recover(
    Attempts& attempts, absl::Status& status, Cancellation& cancellation) {
  if (!absl::IsUnavailable(status)) attempts.broken_off_since.reset();
  if (IsRefusal(status)) {
    co_return co_await WaitForRoom(attempts, status, cancellation);
  }
  attempts.place.reset();  // it does not wait for room
  place_.reset();
  if ((seat_.has_begun() || seat_.use().is_resumed) && IsFailure(status) &&
      !seat_.is_suspect() && !std::exchange(has_failed_, true)) {
    co_return ReopenAfterFailure(attempts.call, status);
  }
  co_return co_await GoElsewhereOrHold(attempts, status, cancellation);
}

Task<SessionVerifier::Next> SessionVerifier::WaitForRoom(
    Attempts& attempts, const absl::Status& refusal,
    Cancellation& cancellation) {
  const VerifyCall& call = attempts.call;
  const bool has_nothing = call.header.delta.keep_length == 0;
  seat_.GiveTurnBack();
  attempts.full.push_back(&seat_.node());
  // Another costs it the same.
  const bool has_left =
      has_nothing &&
      (is_kept() ? seat_.TakeRoomElsewhere(call, attempts.full)
                 : seat_.TakeOther(call, attempts.full,
                                   /*even_doubtful=*/false) != nullptr);
  if (has_left) co_return Next::kReopen;
  if (seat_.has_begun() && !attempts.held.has_value()) {
    OUTRIDER_LOG(kInfo, seat_.FieldsOf(call))
        << "holds, as no verifier has room for it: " << refusal;
    attempts.held.emplace(pool_.moves());
  }
  auto& place = seat_.has_begun() ? attempts.place : place_;
  if (place == nullptr) {
    WaitingRoom::Guest guest = AsGuest(call);
    if (has_nothing) guest.at = nullptr;
    place = pool_.waiting_room().Enter(guest);
  }
  if (place == nullptr) co_return Next::kEnd;
  place->WasRefusedBy(std::exchange(attempts.full, {}));
  const auto delay = JitteredRetryDelay(refusal, session_, attempts.number);
  co_await place->Wait(pool_.timer(), delay, cancellation);
  co_return Next::kAsk;
}

SessionVerifier::Next SessionVerifier::ReopenAfterFailure(
    const VerifyCall& call, const absl::Status& failure) {
  // A pass fails for all that are in it. If the session itself is the cause, it
  // fails once more, and never comes to a third verifier.
  seat_.GiveTurnBack();
  if (Move(call, MoveReason::kFailed, failure)) return Next::kReopen;
  if (!seat_.MayReopen()) return Next::kEnd;
  OUTRIDER_LOG(kWarning, seat_.FieldsOf(call))
      << "is opened again where it is, as a step failed: " << failure;
  return Next::kReopen;
}

Task<SessionVerifier::Next> SessionVerifier::GoElsewhereOrHold(
    Attempts& attempts, absl::Status& status, Cancellation& cancellation) {
  const VerifyCall& call = attempts.call;
  const bool is_misplaced = seat_.has_begun() && IsMisplaced(status);
  if (is_misplaced) status = absl::UnavailableError(status.ToString());
  const std::optional<MoveReason> reason = ReasonOf(status);
  if (!reason.has_value()) co_return Next::kEnd;
  if (is_kept() && Move(call, *reason, status)) co_return Next::kReopen;
  // Here an opening would be refused for ever.
  const bool leaves = !is_kept() && FitsNoMore(*reason);
  if (leaves) {
    const Nodes here = {&seat_.node()};
    if (Seat<VerifierNode> left =
            seat_.TakeOther(call, here, /*even_doubtful=*/true)) {
      // It may have opened the session, as another model.
      seat_.Leave(std::move(left), call);
      co_return Next::kAsk;
    }
  }
  seat_.GiveTurnBack();
  if (*reason == MoveReason::kLate && !at_seat_.was_silent()) {
    const bool is_over = !seat_.has_begun() && at_seat_.was_patient();
    co_return is_over ? Next::kEnd : Next::kAsk;  // with more patience
  }
  // One that is there, and says what it is, answers so for the session's sake.
  const bool is_own = is_misplaced && co_await IsThere(cancellation);
  attempts.num_misplaced = is_own ? attempts.num_misplaced + 1 : 0;
  if (!is_own && absl::IsUnavailable(status)) ++attempts.num_broken;
  const bool is_lost =
      attempts.num_broken >= kMaxBroken && !(is_kept() && seat_.may_move());
  const bool is_broken_off =
      !is_misplaced && absl::IsUnavailable(status) && was_there_;
  if (is_lost || attempts.num_misplaced >= kMaxBroken ||
      attempts.IsBrokenOffForLong(is_broken_off)) {
    co_return Next::kEnd;
  }
  if (IsUnservedForLong(attempts, status)) {
    status = UnservedError(status);
    co_return Next::kEnd;
  }
  if (!attempts.held.has_value()) {
    OUTRIDER_LOG(kWarning, seat_.FieldsOf(call))
        << "holds, as no other verifier is ready: " << status;
    attempts.held.emplace(pool_.moves());
  }
  co_await pool_.timer().Sleep(attempts.pause, cancellation);
  attempts.pause = std::min(2 * attempts.pause, kLongestPause);
  co_return Next::kAsk;
}

bool SessionVerifier::IsUnservedForLong(Attempts& attempts,
                                        const absl::Status& status) {
  auto& since = attempts.unserved_since;
  if (!seat_.IsUnserved(attempts.call)) {
    since.reset();
    return false;
  }
  if (!since.has_value()) since = Clock::now();
  return absl::IsAborted(status) || Clock::now() - *since > kUnservedPatience;
}

absl::Status SessionVerifier::UnservedError(const absl::Status& status) {
  if (seat_.IsModelGone()) {
    return absl::AbortedError(
        absl::StrCat("only other models are left: ", status.message()));
  }
  if (IsOutgrown(status)) return status;
  return absl::UnavailableError(absl::StrCat(
      "those that are left would serve it begun anew: ", status.message()));
}

}  // namespace outrider
