// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/optional_draft_client.h"

#include <utility>

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

NodeDraftClient::Length OptionalDraftClient::LengthOf(
    const DraftLengthControl::Choice& choice) {
  NodeDraftClient::Length length = {.num_tokens = choice.num_drafts};
  if (choice.chooses_stop) {
    length.min_draft_probability = DraftLength::kStops[choice.stop];
  }
  return length;
}

Task<absl::StatusOr<ProposedDraft>> OptionalDraftClient::Propose(
    Session& session, int num_tokens) {
  choice_.reset();
  if (fill_ == nullptr) TakeDrafter(choose_(session));
  ProposedDraft no_draft = {.draft = Draft::None(session.length())};
  if (!drafter_.has_value() || !drafter_->node.Reaches(session)) {
    if (num_tokens > 0) no_draft.plain_reason = PlainReason::kNoDrafter;
    co_return no_draft;
  }
  const DraftLengthControl& control = drafter_->control;
  if (num_tokens == 0) {
    Prepare(session, control.Asks(mode_), no_draft.link);
    co_return no_draft;
  }
  // What it would not draft anyway is no draft that was refused.
  const DraftLengthControl::Choice choice =
      control.Choose(drafter_->node.MostDrafts(session, num_tokens), mode_);
  choice_ = choice;
  PlainReason reason = Prepare(session, choice.num_drafts > 0, no_draft.link);
  if (reason == PlainReason::kNone && !MayCall(Clock::now())) {
    reason = PlainReason::kDraftFailed;
  }
  if (reason == PlainReason::kNone) {
    const Stopwatch watch;
    absl::StatusOr<ProposedDraft> proposed =
        co_await drafter_->node.Propose(session, LengthOf(choice));
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
      reason = Prepare(session, /*is_wanted=*/true, no_draft.link);
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
  const bool has_both = drafter.has_value() && drafter_.has_value();
  if (has_both && &drafter->breaker != &drafter_->breaker) {
    own_breaker_.Success();  // what failed, failed at the last one
  }
  // Rounds are numbered by each control: one node has several, as it may come
  // back with another model.
  if (!has_both || &drafter->control != &drafter_->control) {
    choice_.reset();
    last_round_ = 0;
  }
  drafter_.reset();
  if (drafter.has_value()) drafter_.emplace(*drafter);
}

void OptionalDraftClient::LearnBeside(const RoundStats& round,
                                      bool drafts_ahead) {
  const bool is_first = std::exchange(is_first_, false);
  const bool follows_drafts =
      std::exchange(had_drafts_, round.num_by_drafter() > 0);
  // The next round may have nothing to choose: near its end a text has no room
  // for drafts.
  std::optional<DraftLengthControl::Choice> choice =
      std::exchange(choice_, std::nullopt);
  if (is_first || !choice.has_value()) return;
  const bool is_ordinary =
      round.drafter.num_misses() == 0 && round.drafter.num_failures == 0 &&
      round.verifier.num_misses() == 0 && round.verifier.num_failures == 0;
  // Where the drafter had to take in the text first, it was not asked.
  const bool is_as_chosen =
      choice->num_drafts == 0 || round.plain_reason == PlainReason::kNone;
  if (!is_ordinary || !is_as_chosen) return;
  choice->drafts_ahead = drafts_ahead;
  choice->follows_drafts = follows_drafts;
  choice->after = last_round_;
  last_round_ = drafter_->control.Learn(*choice, round);
}

std::optional<OptionalDraftClient::Drafter> OptionalDraftClient::Lend(
    Session& session) {
  if (fill_ != nullptr) return std::nullopt;
  TakeDrafter(choose_(session));
  const bool is_ready = drafter_.has_value() &&
                        !NodeDraftClient::LacksMuch(session) &&
                        drafter_->node.Reaches(session);
  if (!is_ready || !MayCall(Clock::now())) return std::nullopt;
  return drafter_;
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

PlainReason OptionalDraftClient::Prepare(Session& session, bool is_wanted,
                                         RoundStats::Link& link) {
  if (fill_ != nullptr) {
    if (!fill_->is_done()) return PlainReason::kDrafterFills;
    if (!TakeFill(session, link)) return PlainReason::kDraftFailed;
  }
  if (!is_wanted) return PlainReason::kDrafterSlow;
  if (!NodeDraftClient::LacksMuch(session)) return PlainReason::kNone;
  if (!MayCall(Clock::now())) return PlainReason::kDraftFailed;
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
  own_permit_ = own_breaker_.Allow(now);
  if (!own_permit_) return false;
  permit_ = drafter_->breaker.Allow(now);
  if (permit_) return true;
  own_breaker_.Abandon(own_permit_);
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
  const Clock::time_point now = Clock::now();
  bool is_news = false;
  if (is_own) {
    if (absl::IsAborted(status)) {
      // A miss, as all sessions' calls meet first at one that was away: it
      // answers, and they need not probe it one by one.
      drafter_->breaker.Success();
    } else {
      drafter_->breaker.Abandon(permit_);
    }
    is_news = own_breaker_.Failure(now, own_permit_);
  } else {
    own_breaker_.Abandon(own_permit_);
    is_news = drafter_->breaker.Failure(now, permit_);
  }
  // A drafter that comes back has lost all its sessions, and misses are
  // counted.
  if (is_news && !absl::IsAborted(status)) {
    OUTRIDER_LOG(kWarning) << "drafting failed, going on without: " << status;
  }
}

void OptionalDraftClient::Abandon() {
  own_breaker_.Abandon(own_permit_);
  drafter_->breaker.Abandon(permit_);
}

}  // namespace outrider
