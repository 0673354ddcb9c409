// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/node_verify_client.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "coordinator/peers/miss_recovery.h"
#include "coordinator/round/shorten_draft.h"
#include "coordinator/round/stopwatch.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"

namespace outrider {

Task<absl::StatusOr<ScoredDraft>> NodeVerifyClient::Score(Session& session,
                                                          Draft& draft) {
  RoundStats::Link link;
  const Stopwatch watch;
  CacheMirror& cache = session.verifier_cache();
  // A verifier that is lost may have drawn tokens that nobody saw. The next one
  // has to draw just as many, by the same coins: if it drew fewer because the
  // first was lost, and that had died of its tokens, these would decide how
  // they are drawn.
  const int most_more = MostMore(session, draft);
  int num_misses = 0;
  while (num_misses < kMaxMissesPerCall) {
    // A node's limit says nothing of which tokens the drafts are, so a cut to
    // it is exact. Exception: the drafts that are cut took down a verifier that
    // took more of them.
    Shorten(MostDrafts(session), draft);
    const int num_more =
        std::min(OUTRIDER_MUTANT(R3, most_more, num_misses > 0 ? 0 : most_more),
                 MostDrafts(session));
    const VerifyCall call = MakeCall(session, draft, num_more);
    ++link.num_messages;
    OUTRIDER_CO_ASSIGN_OR_RETURN(
        VerifyReply reply, co_await stub_.Verify(call, session.cancellation()));
    OUTRIDER_CO_RETURN_IF_ERROR(CheckEcho(call.header, reply.header));
    ++link.num_messages;
    link.wire_bytes += reply.wire_bytes;
    link.sent_bytes += reply.sent_bytes;
    link.num_reused += reply.header.reused_length;
    link.compute_seconds += reply.header.compute_seconds;
    link.own_seconds += reply.header.own_seconds;
    link.queue_seconds += reply.header.queue_seconds;
    link.num_failures += reply.num_retries;
    if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
      RecoverFrom(*miss, cache, link);
      // One that comes as another verifier takes fewer is no failure.
      if (draft.length() + num_more <= MostDrafts(session)) ++num_misses;
      continue;
    }
    cache.Acknowledged(reply.header.cached_length, reply.header.incarnation);
    OUTRIDER_CO_ASSIGN_OR_RETURN(DraftScore score,
                                 codec_.Read(call, std::move(reply),
                                             {.draft = draft,
                                              .history = session.History(),
                                              .random = session.coins()}));
    link.call_seconds = watch.seconds();
    const bool is_opening = call.header.incarnation.is_none();
    const bool is_ordinary = link.num_misses() == 0 && link.num_failures == 0;
    if (run_ != nullptr && !is_opening && is_ordinary) {
      run_->Learn(
          {.link = link,
           .num_drafts = draft.length(),
           .num_passes = 1 + static_cast<int>(score.more_tokens.size())});
    }
    co_return ScoredDraft{
        .score = std::move(score),
        .link = link,
        .next_run = 1 + std::min(NextRun(session) - 1, MostDrafts(session))};
  }
  co_return absl::UnavailableError("the verifier keeps losing the session");
}

int NodeVerifyClient::NextRun(const Session& session) const {
  const bool may_go_on = run_ != nullptr && codec_.GoesOn() &&
                         session.end_tokens().size() <= kMaxEndTokens;
  return may_go_on ? run_->Next() : 1;
}

int NodeVerifyClient::MostMore(Session& session, const Draft& draft) const {
  // A first token waits for no other.
  const bool is_opening = session.verifier_cache().incarnation().is_none();
  if (draft.length() > 0 || is_opening) return 0;
  return std::min(NextRun(session) - 1, session.MaxDraftLength());
}

VerifyCall NodeVerifyClient::MakeCall(Session& session, const Draft& draft,
                                      int most_more) const {
  VerifyCall call = {.header = session.NextHeader(session.verifier_cache()),
                     .draft_tokens = draft.tokens,
                     .reply_format = format_,
                     .sampling = session.sampling(),
                     .seed = session.seed(),
                     .prompt_length = session.prompt_length(),
                     .rule = session.rule(),
                     .logprobs = session.logprobs(),
                     .max_more_tokens = most_more,
                     .log_ids = session.log_ids()};
  if (most_more > 0) call.end_tokens = session.end_tokens();
  codec_.Ask(draft, call);
  return call;
}

}  // namespace outrider
