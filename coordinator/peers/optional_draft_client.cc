// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/optional_draft_client.h"

#include "absl/status/status.h"
#include "coordinator/round/stopwatch.h"
#include "core/base/log.h"
#include "core/base/retry_delay.h"

namespace outrider {
namespace {

// Whether a failure belongs to the session that met it, rather than to the
// node: what it sent, its size, its cache.
bool IsSessionsOwn(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
      return true;
    default:
      return false;
  }
}

}  // namespace

Task<absl::StatusOr<ProposedDraft>> OptionalDraftClient::Propose(
    Session& session, int num_tokens) {
  has_asked_ = false;
  if (fill_ == nullptr) TakeDrafter(choose_(session));
  ProposedDraft no_draft = {.draft = Draft::None(session.length())};
  if (!drafter_.has_value() || !drafter_->node.Reaches(session)) {
    co_return no_draft;
  }
  PlainReason reason = Prepare(session, no_draft.link);
  if (num_tokens == 0) co_return no_draft;
  if (reason == PlainReason::kNone && !MayCall(Clock::now())) {
    reason = PlainReason::kDraftFailed;
  }
  if (reason == PlainReason::kNone) {
    has_asked_ = true;
    const Stopwatch watch;
    absl::StatusOr<ProposedDraft> proposed =
        co_await drafter_->node.Propose(session, num_tokens);
    if (session.cancellation().cancelled()) {
      Abandon();
      co_return proposed;
    }
    Ended(proposed.status());
    if (proposed.ok()) {
      proposed->link.Add(no_draft.link);
      if (!NodeDraftClient::LacksMuch(session)) co_return proposed;
      // It has lost the session, which a miss has shown.
      no_draft.link = proposed->link;
      reason = Prepare(session, no_draft.link);
    } else {
      no_draft.link.call_seconds += watch.seconds();
      ++no_draft.link.num_messages;
      reason = PlainReason::kDraftFailed;
    }
  }
  no_draft.plain_reason = reason;
  if (reason == PlainReason::kDraftFailed) ++no_draft.link.num_failures;
  co_return no_draft;
}

void OptionalDraftClient::TakeDrafter(std::optional<Drafter> drafter) {
  const bool is_other = drafter.has_value() && drafter_.has_value() &&
                        &drafter->breaker != &drafter_->breaker;
  if (is_other) own_breaker_.Success();  // what failed, failed at the last one
  drafter_.reset();
  if (drafter.has_value()) drafter_.emplace(*drafter);
}

void OptionalDraftClient::Learn(const RoundStats& round) {
  if (!has_asked_) return;
  has_asked_ = false;
  drafter_->pace.Took(round.drafter.call_seconds,
                      round.num_accepted * round.verifier.call_seconds,
                      Clock::now());
}

Task<void> OptionalDraftClient::Stop(Session& session) {
  if (fill_ == nullptr) co_return;
  if (fill_->is_done()) {
    RoundStats::Link of_no_round;
    TakeFill(session, of_no_round);
    co_return;
  }
  co_await fill_->Stop();
  fill_.reset();
  Abandon();
}

PlainReason OptionalDraftClient::Prepare(Session& session,
                                         RoundStats::Link& link) {
  if (fill_ != nullptr) {
    if (!fill_->is_done()) return PlainReason::kDrafterFills;
    if (!TakeFill(session, link)) return PlainReason::kDraftFailed;
  }
  const Clock::time_point now = Clock::now();
  if (!drafter_->pace.IsWorthAsking(now)) return PlainReason::kDrafterSlow;
  if (!NodeDraftClient::LacksMuch(session)) return PlainReason::kNone;
  if (!MayCall(now)) return PlainReason::kDraftFailed;
  fill_ = drafter_->node.Fill(session);
  return PlainReason::kDrafterFills;
}

bool OptionalDraftClient::TakeFill(Session& session, RoundStats::Link& link) {
  const absl::Status status = drafter_->node.TakeIn(*fill_, session, link);
  fill_.reset();
  Ended(status);
  return status.ok();
}

bool OptionalDraftClient::MayCall(Clock::time_point now) {
  if (!own_breaker_.Allow(now)) return false;
  if (drafter_->breaker.Allow(now)) return true;
  own_breaker_.Abandon();
  return false;
}

void OptionalDraftClient::Ended(const absl::Status& status) {
  if (status.ok()) {
    own_breaker_.Success();
    drafter_->breaker.Success();
    return;
  }
  if (IsRefusal(status)) {  // it is busy, which is nobody's failure
    Abandon();
    return;
  }
  const bool is_own = IsSessionsOwn(status);
  CircuitBreaker& concerned = is_own ? own_breaker_ : drafter_->breaker;
  (is_own ? drafter_->breaker : own_breaker_).Abandon();
  if (concerned.Failure(Clock::now())) {
    OUTRIDER_LOG(kWarning) << "drafting failed, going on without: " << status;
  }
}

void OptionalDraftClient::Abandon() {
  own_breaker_.Abandon();
  drafter_->breaker.Abandon();
}

}  // namespace outrider
