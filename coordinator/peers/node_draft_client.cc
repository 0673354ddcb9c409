// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/node_draft_client.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/peers/miss_recovery.h"
#include "coordinator/round/stopwatch.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// The drafter takes this much in on the way, where it drafts anyway.
constexpr int kMostOnTheWay = 32;

// How much of the committed text the drafter holds, that took in the call's
// drafts in flight.
int SharedLength(const DraftCall& call, const Session& session) {
  const auto start = static_cast<int>(call.header.delta.length());
  const absl::Span<const TokenId> text = session.committed().From(start);
  const auto [end, of_drafts] =
      std::mismatch(text.begin(), text.end(), call.in_flight_tokens.begin(),
                    call.in_flight_tokens.end());
  return start + static_cast<int>(end - text.begin());
}

absl::Status CheckDraft(const Draft& draft, uint64_t start, int num_tokens) {
  const bool fits = draft.length() <= num_tokens &&
                    draft.tokens.size() == draft.distributions.size() &&
                    draft.start == start;
  if (!fits) {
    return absl::InternalError(
        absl::StrCat("the drafter was asked for ", num_tokens, " tokens at ",
                     start, " and sent ", draft.length(), " at ", draft.start));
  }
  for (int i = 0; i < draft.length(); ++i) {
    if (draft.distributions[i](draft.tokens[i]) <= 0) {
      return absl::InternalError(
          "the drafter sent a token that its own row excludes");
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool NodeDraftClient::LacksMuch(Session& session) {
  const int length = session.drafter_cache().length();
  return length == 0 || session.length() - length > kMostOnTheWay;
}

Task<absl::StatusOr<ProposedDraft>> NodeDraftClient::Propose(Session& session,
                                                             Length length) {
  ProposedDraft proposed = {.draft = Draft::None(session.length())};
  if (!Reaches(session)) co_return proposed;
  const Stopwatch watch;
  const bool lacked_much = LacksMuch(session);
  for (int attempt = 0; attempt < kMaxMissesPerCall; ++attempt) {
    const DraftCall call = MakeCall(session, length);
    ++proposed.link.num_messages;
    OUTRIDER_CO_ASSIGN_OR_RETURN(
        DraftReply reply, co_await stub_.Draft(call, session.cancellation()));
    proposed.link.compute_seconds += reply.header.compute_seconds;
    proposed.link.queue_seconds += reply.header.queue_seconds;
    proposed.link.call_seconds = watch.seconds();
    OUTRIDER_CO_ASSIGN_OR_RETURN(const bool fits,
                                 Read(call, reply, session, proposed.link));
    if (fits) proposed.draft = std::get<Draft>(std::move(reply.outcome));
    if (fits || (!lacked_much && LacksMuch(session))) co_return proposed;
  }
  co_return absl::AbortedError("the drafter keeps losing the session");
}

std::unique_ptr<SideDraft> NodeDraftClient::Fill(Session& session) {
  return std::make_unique<SideDraft>(stub_, MakeCall(session, {}));
}

absl::Status NodeDraftClient::TakeIn(SideDraft& fill, Session& session,
                                     RoundStats::Link& link) {
  ++link.num_messages;
  OUTRIDER_ASSIGN_OR_RETURN(const DraftReply reply, fill.TakeReply());
  OUTRIDER_ASSIGN_OR_RETURN(const bool fits,
                            Read(fill.call(), reply, session, link));
  if (!fits) return absl::AbortedError("the drafter has lost the session");
  // The text has gone on, and no verdict will cut what the drafter says that it
  // holds beyond what it was sent.
  const auto num_sent = static_cast<int>(fill.call().header.delta.length());
  session.drafter_cache().SharesOnly(num_sent);
  return absl::OkStatus();
}

std::unique_ptr<SideDraft> NodeDraftClient::AskAhead(Session& session,
                                                     const Draft& in_flight,
                                                     const AskedAhead& asked) {
  // The least that may be committed counts; what then has no room is not used.
  const int num_tokens = std::min(
      {asked.length.num_tokens, options_.max_draft_tokens,
       options_.context_length - session.length() - in_flight.length() - 1,
       session.MaxDraftLength() - 1});
  const int max_outcomes = std::min(asked.max_outcomes, options_.max_outcomes);
  if (num_tokens < 1 || max_outcomes < 1) return nullptr;
  DraftCall call = MakeCallFor(session, asked.length);
  call.header = session.NextHeader(session.drafter_cache(),
                                   OUTRIDER_MUTANT(H2, max_outcomes, 1));
  call.max_draft_tokens = num_tokens;
  call.in_flight_tokens = in_flight.tokens;
  call.max_outcomes = max_outcomes;
  call.acceptance = asked.acceptance;
  return std::make_unique<SideDraft>(stub_, std::move(call));
}

absl::StatusOr<DraftReply> NodeDraftClient::TakeAhead(SideDraft& ahead,
                                                      Session& session,
                                                      RoundStats::Link& link) {
  ++link.num_messages;
  const DraftCall& call = ahead.call();
  absl::StatusOr<DraftReply> taken = ahead.TakeReply();
  if (!taken.ok()) {
    // A drafter that was busy may have cut its cache for this call and not have
    // filled it: there the drafts in flight are missing, which it had drafted.
    CacheMirror& cache = session.drafter_cache();
    cache.ShrankTo(
        OUTRIDER_MUTANT(H4, call.header.delta.keep_length, cache.length()));
    return taken.status();
  }
  DraftReply reply = *std::move(taken);
  OUTRIDER_ASSIGN_OR_RETURN(const bool fits, Read(call, reply, session, link));
  if (!fits) return absl::AbortedError("the drafter has lost the session");
  session.drafter_cache().SharesOnly(
      OUTRIDER_MUTANT(H3, SharedLength(call, session), session.length()));
  for (const OutcomeDraft& outcome : reply.outcomes) {
    const uint64_t start =
        call.header.delta.length() + outcome.num_accepted + 1;
    OUTRIDER_RETURN_IF_ERROR(
        CheckDraft(outcome.draft, start, call.max_draft_tokens));
  }
  return reply;
}

DraftCall NodeDraftClient::MakeCall(Session& session,
                                    const Length& length) const {
  DraftCall call = MakeCallFor(session, length);
  call.header = session.NextHeader(session.drafter_cache());
  call.max_draft_tokens = MostDrafts(session, length.num_tokens);
  return call;
}

DraftCall NodeDraftClient::MakeCallFor(const Session& session,
                                       const Length& length) const {
  const bool is_coupled = session.rule() == RuleKind::kCoupled;
  // Where rows do not travel, a cut would save nothing.
  const bool rows_travel = !is_coupled && !IsGreedy(session.sampling());
  DraftOptions drafting = options_.drafting;
  if (!rows_travel) drafting.support_mass = 1;
  if (length.min_draft_probability.has_value()) {
    drafting.min_draft_probability = length.min_draft_probability;
  }
  return {.options = drafting,
          .sampling = session.sampling(),
          .seed = session.seed(),
          .prompt_length = session.prompt_length(),
          // Drafts are drawn with the same coins, however they will be judged.
          .rule = is_coupled ? RuleKind::kCoupled : RuleKind::kRejection,
          .log_ids = session.log_ids()};
}

absl::StatusOr<bool> NodeDraftClient::Read(const DraftCall& call,
                                           const DraftReply& reply,
                                           Session& session,
                                           RoundStats::Link& link) {
  OUTRIDER_RETURN_IF_ERROR(CheckEcho(call.header, reply.header));
  CacheMirror& cache = session.drafter_cache();
  ++link.num_messages;
  link.wire_bytes += reply.wire_bytes;
  link.sent_bytes += reply.sent_bytes;
  link.num_reused += reply.header.reused_length;
  if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
    RecoverFrom(*miss, cache, link);
    return false;
  }
  const int num_tokens = call.max_outcomes > 0 ? 0 : call.max_draft_tokens;
  OUTRIDER_RETURN_IF_ERROR(CheckDraft(std::get<Draft>(reply.outcome),
                                      call.header.delta.length(), num_tokens));
  cache.Acknowledged(reply.header.cached_length, reply.header.incarnation);
  return true;
}

}  // namespace outrider
