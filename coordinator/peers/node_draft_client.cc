// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/node_draft_client.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/peers/miss_recovery.h"
#include "coordinator/round/stopwatch.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// The drafter takes this much in on the way, where it drafts anyway.
constexpr int kMostOnTheWay = 32;

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
                                                             int num_tokens) {
  ProposedDraft proposed = {.draft = Draft::None(session.length())};
  if (!Reaches(session)) co_return proposed;
  const Stopwatch watch;
  const bool lacked_much = LacksMuch(session);
  for (int attempt = 0; attempt < kMaxMissesPerCall; ++attempt) {
    const DraftCall call = MakeCall(session, num_tokens);
    ++proposed.link.num_messages;
    OUTRIDER_CO_ASSIGN_OR_RETURN(
        DraftReply reply, co_await stub_.Draft(call, session.cancellation()));
    proposed.link.compute_seconds += reply.header.compute_seconds;
    proposed.link.call_seconds = watch.seconds();
    OUTRIDER_CO_ASSIGN_OR_RETURN(
        std::optional<Draft> draft,
        Read(call, std::move(reply), session, proposed.link));
    if (draft.has_value()) proposed.draft = *std::move(draft);
    if (draft.has_value() || (!lacked_much && LacksMuch(session))) {
      co_return proposed;
    }
  }
  co_return absl::AbortedError("the drafter keeps losing the session");
}

std::unique_ptr<CacheFill> NodeDraftClient::Fill(Session& session) {
  return std::make_unique<CacheFill>(stub_, MakeCall(session, 0));
}

absl::Status NodeDraftClient::TakeIn(CacheFill& fill, Session& session,
                                     RoundStats::Link& link) {
  ++link.num_messages;
  OUTRIDER_ASSIGN_OR_RETURN(DraftReply reply, fill.TakeReply());
  OUTRIDER_ASSIGN_OR_RETURN(const std::optional<Draft> nothing,
                            Read(fill.call(), std::move(reply), session, link));
  if (nothing.has_value()) return absl::OkStatus();
  return absl::AbortedError("the drafter has lost the session");
}

DraftCall NodeDraftClient::MakeCall(Session& session, int num_tokens) const {
  const bool is_coupled = session.rule() == RuleKind::kCoupled;
  // Where rows do not travel, a cut would save nothing.
  const bool rows_travel = !is_coupled && !IsGreedy(session.sampling());
  DraftOptions drafting = options_.drafting;
  if (!rows_travel) drafting.support_mass = 1;
  return {.header = session.NextHeader(session.drafter_cache()),
          .max_draft_tokens =
              std::min({num_tokens, options_.max_draft_tokens,
                        options_.context_length - session.length()}),
          .options = drafting,
          .sampling = session.sampling(),
          .seed = session.seed(),
          .prompt_length = session.prompt_length(),
          // Drafts are drawn with the same coins, however they will be judged.
          .rule = is_coupled ? RuleKind::kCoupled : RuleKind::kRejection,
          .log_ids = session.log_ids()};
}

absl::StatusOr<std::optional<Draft>> NodeDraftClient::Read(
    const DraftCall& call, DraftReply reply, Session& session,
    RoundStats::Link& link) {
  OUTRIDER_RETURN_IF_ERROR(CheckEcho(call.header, reply.header));
  CacheMirror& cache = session.drafter_cache();
  ++link.num_messages;
  link.wire_bytes += reply.wire_bytes;
  link.sent_bytes += reply.sent_bytes;
  link.num_reused += reply.header.reused_length;
  if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
    RecoverFrom(*miss, cache, link);
    return std::nullopt;
  }
  Draft draft = std::get<Draft>(std::move(reply.outcome));
  const CacheDelta& delta = call.header.delta;
  const uint64_t start = delta.keep_length + delta.append_tokens.size();
  OUTRIDER_RETURN_IF_ERROR(CheckDraft(draft, start, call.max_draft_tokens));
  cache.GrewTo(reply.header.cached_length, reply.header.incarnation);
  return draft;
}

}  // namespace outrider
