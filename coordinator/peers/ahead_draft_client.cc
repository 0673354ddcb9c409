// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/ahead_draft_client.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "coordinator/round/shorten_draft.h"
#include "coordinator/round/stopwatch.h"
#include "core/base/mutant.h"
#include "core/base/retry_delay.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

using Outcome = AheadStats::Outcome;

// What seems sure is not: the other outcomes are worth a try.
constexpr double kMostAcceptance = 0.99;

// What the text has had since drafts were sent to be verified.
absl::Span<const TokenId> NewTokens(const DraftCall& call,
                                    const Session& session) {
  return session.committed().From(static_cast<int>(call.header.delta.length()));
}

// Whether these are so many of the drafts in flight and one token more.
bool IsOutcome(absl::Span<const TokenId> tokens, const DraftCall& call) {
  const absl::Span<const TokenId> drafts = call.in_flight_tokens;
  return !tokens.empty() && tokens.size() <= drafts.size() + 1 &&
         absl::c_equal(tokens.first(tokens.size() - 1),
                       drafts.first(tokens.size() - 1));
}

// How many of the drafts in flight the verdict took.
int NumAccepted(const DraftCall& call, const Session& session) {
  const absl::Span<const TokenId> tokens = NewTokens(call, session);
  if (tokens.empty()) return 0;
  const absl::Span<const TokenId> drafts = call.in_flight_tokens;
  const absl::Span<const TokenId> taken =
      drafts.first(std::min(drafts.size(), tokens.size() - 1));
  const auto end = std::mismatch(taken.begin(), taken.end(), tokens.begin());
  return static_cast<int>(end.first - taken.begin());
}

bool AllStand(const DraftCall& call, const Session& session) {
  return NumAccepted(call, session) ==
             static_cast<int>(call.in_flight_tokens.size()) &&
         !NewTokens(call, session).empty();
}

// Whether the drafter, whose answer is not known yet, may have drafted for what
// the text has become.
bool MayBeHit(const DraftCall& call, const Session& session) {
  return IsOutcome(NewTokens(call, session), call) &&
         (AllStand(call, session) || call.acceptance < 1);
}

// The draft that follows the text as it is; nothing where none does.
std::optional<Draft> FindHit(std::vector<OutcomeDraft> outcomes,
                             const DraftCall& call, const Session& session) {
  const absl::Span<const TokenId> tokens = NewTokens(call, session);
  if (!IsOutcome(tokens, call)) return std::nullopt;
  for (OutcomeDraft& outcome : outcomes) {
    const bool is_token = outcome.next_token == tokens.back();
    if (outcome.num_accepted + 1 == static_cast<int>(tokens.size()) &&
        OUTRIDER_MUTANT(H1, is_token, true)) {
      return std::move(outcome.draft);
    }
  }
  return std::nullopt;
}

void Describe(const DraftReply& reply, double call_seconds, AheadStats& stats) {
  stats.call_seconds = call_seconds;
  stats.compute_seconds = reply.header.compute_seconds;
  for (const OutcomeDraft& outcome : reply.outcomes) {
    stats.num_outcomes += outcome.draft.length() > 0 ? 1 : 0;
    stats.num_drafted += outcome.draft.length();
    stats.longest = std::max(stats.longest, outcome.draft.length());
  }
}

}  // namespace

Task<absl::StatusOr<ProposedDraft>> AheadDraftClient::Propose(Session& session,
                                                              int num_tokens) {
  num_tokens_ = num_tokens;
  Settled settled;
  if (ahead_.has_value()) settled = co_await Settle(session, num_tokens);
  if (settled.draft.has_value()) {
    co_return ProposedDraft{.draft = *std::move(settled.draft),
                            .link = settled.link,
                            .ahead = settled.stats};
  }
  OUTRIDER_CO_ASSIGN_OR_RETURN(ProposedDraft proposed,
                               co_await drafter_.Propose(session, num_tokens));
  proposed.link.Add(settled.link);
  proposed.ahead = settled.stats;
  co_return proposed;
}

void AheadDraftClient::DraftAhead(Session& session, const Draft& in_flight) {
  if (schedule_ == Schedule::kSequential || in_flight.length() == 0 ||
      ahead_.has_value()) {
    return;
  }
  const std::optional<OptionalDraftClient::Drafter> drafter =
      drafter_.Lend(session);
  if (!drafter.has_value()) return;
  // What failed, failed at the last one.
  if (std::exchange(last_, &drafter->breaker) != &drafter->breaker) {
    breaker_.Success();
  }
  const CircuitBreaker::Permit permit =
      breaker_.Allow(CircuitBreaker::Clock::now());
  if (!permit) {
    drafter_.Abandon();
    return;
  }
  const DraftLengthControl::Choice choice =
      drafter->control.ChooseAhead(num_tokens_, drafter_.mode());
  const bool only_all = schedule_ == Schedule::kAhead;
  std::unique_ptr<SideDraft> call = drafter->node.AskAhead(
      session, in_flight,
      {.length = OptionalDraftClient::LengthOf(choice),
       .max_outcomes = only_all ? 1 : drafter->control.NumOutcomes(),
       .acceptance = only_all ? 1
                              : std::min(drafter->control.Acceptance(),
                                         kMostAcceptance)});
  Ahead ahead = {.drafter = *drafter,
                 .choice = choice,
                 .call = std::move(call),
                 .permit = permit};
  if (ahead.call == nullptr) {
    Abandon(ahead);
    return;
  }
  ahead_.emplace(std::move(ahead));
}

void AheadDraftClient::Ended(const Ahead& ahead, const absl::Status& status) {
  drafter_.Ended(status);
  if (status.ok()) {
    breaker_.Success();
  } else if (IsRefusal(status)) {
    breaker_.Abandon(ahead.permit);
  } else {
    breaker_.Failure(CircuitBreaker::Clock::now(), ahead.permit);
  }
}

void AheadDraftClient::Abandon(const Ahead& ahead) {
  drafter_.Abandon();
  breaker_.Abandon(ahead.permit);
}

Task<AheadDraftClient::Settled> AheadDraftClient::Settle(Session& session,
                                                         int num_tokens) {
  Ahead ahead = std::move(*ahead_);
  ahead_.reset();
  const DraftCall& call = ahead.call->call();
  Settled settled = {.stats = {.outcome = Outcome::kMiss,
                               .num_accepted = NumAccepted(call, session),
                               .all_stood = AllStand(call, session)}};
  const bool may_be_hit = num_tokens > 0 && MayBeHit(call, session);
  if (may_be_hit) {
    const Stopwatch watch;
    if (!ahead.call->is_done()) {
      co_await ahead.call->Wait(session.cancellation());
      settled.stats.wait_seconds = watch.seconds();
    }
  } else {
    co_await ahead.call->Stop();
  }
  settled.link.call_seconds = settled.stats.wait_seconds;

  absl::StatusOr<DraftReply> reply =
      ahead.drafter.node.TakeAhead(*ahead.call, session, settled.link);
  const bool was_stopped = !may_be_hit || session.cancellation().cancelled();
  if (!reply.ok() && was_stopped) {
    Abandon(ahead);
    co_return settled;
  }
  Ended(ahead, reply.status());
  if (!reply.ok()) {
    if (IsRefusal(reply.status())) {
      // It says nothing of what would have been a hit.
      settled.stats = {.wait_seconds = settled.stats.wait_seconds};
    } else {
      ++settled.link.num_failures;
    }
    co_return settled;
  }
  Describe(*reply, ahead.call->seconds(), settled.stats);
  if (!may_be_hit) co_return settled;
  settled.draft = FindHit(std::move(reply->outcomes), call, session);
  if (!settled.draft.has_value()) co_return settled;
  settled.stats.outcome = Outcome::kHit;
  // Fewer have room near the text's end, whatever they are.
  const int most = std::min(num_tokens, call.max_draft_tokens);
  Shorten(most, *settled.draft);
  ahead.choice.num_drafts = std::min(ahead.choice.num_drafts, most);
  drafter_.UseChoice(ahead.choice);
  co_return settled;
}

Task<void> AheadDraftClient::Stop(Session& session) {
  if (ahead_.has_value()) co_await Settle(session, /*num_tokens=*/0);
  co_await drafter_.Stop(session);
}

}  // namespace outrider
