// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/node_draft_client.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/peers/miss_recovery.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

absl::Status CheckDraft(const Draft& draft, const Session& session,
                        int num_tokens) {
  const bool fits = draft.length() <= num_tokens &&
                    draft.tokens.size() == draft.distributions.size() &&
                    draft.start == static_cast<uint64_t>(session.length());
  if (!fits) {
    return absl::InternalError(absl::StrCat(
        "the drafter was asked for ", num_tokens, " tokens at ",
        session.length(), " and sent ", draft.length(), " at ", draft.start));
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

Task<absl::StatusOr<ProposedDraft>> NodeDraftClient::Propose(Session& session,
                                                             int num_tokens) {
  const int room = options_.context_length - session.length();
  if (room <= 0) {
    co_return ProposedDraft{.draft = Draft::None(session.length())};
  }
  num_tokens = std::min(num_tokens, room);
  RoundStats::Link link;
  const Stopwatch watch;
  CacheMirror& cache = session.drafter_cache();
  const bool is_coupled = session.rule() == RuleKind::kCoupled;
  DraftOptions drafting = options_.drafting;
  // Where rows do not travel, a cut would save nothing.
  const bool rows_travel = !is_coupled && !IsGreedy(session.sampling());
  if (!rows_travel) drafting.support_mass = 1;
  for (int attempt = 0; attempt < kMaxMissesPerCall; ++attempt) {
    const DraftCall call = {
        .header = session.NextHeader(cache),
        .max_draft_tokens = num_tokens,
        .options = drafting,
        .sampling = session.sampling(),
        .seed = session.seed(),
        .prompt_length = session.prompt_length(),
        // Drafts are drawn with the same coins, however they will be judged.
        .rule = is_coupled ? RuleKind::kCoupled : RuleKind::kRejection,
        .log_ids = session.log_ids()};
    ++link.num_messages;
    OUTRIDER_CO_ASSIGN_OR_RETURN(
        DraftReply reply, co_await stub_.Draft(call, session.cancellation()));
    OUTRIDER_CO_RETURN_IF_ERROR(CheckEcho(call.header, reply.header));
    ++link.num_messages;
    link.wire_bytes += reply.wire_bytes;
    link.sent_bytes += reply.sent_bytes;
    link.compute_seconds += reply.header.compute_seconds;
    if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
      RecoverFrom(*miss, cache, link);
      continue;
    }
    Draft draft = std::get<Draft>(std::move(reply.outcome));
    OUTRIDER_CO_RETURN_IF_ERROR(CheckDraft(draft, session, num_tokens));
    cache.GrewTo(reply.header.cached_length, reply.header.incarnation);
    link.call_seconds = watch.seconds();
    co_return ProposedDraft{.draft = std::move(draft), .link = link};
  }
  co_return absl::UnavailableError("the drafter keeps losing the session");
}

}  // namespace outrider
