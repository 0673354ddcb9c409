// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/node_verify_client.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "coordinator/peers/miss_recovery.h"
#include "coordinator/round/shorten_draft.h"
#include "coordinator/round/stopwatch.h"
#include "core/base/status_macros.h"

namespace outrider {

Task<absl::StatusOr<ScoredDraft>> NodeVerifyClient::Score(Session& session,
                                                          Draft& draft) {
  RoundStats::Link link;
  const Stopwatch watch;
  CacheMirror& cache = session.verifier_cache();
  int num_misses = 0;
  while (num_misses < kMaxMissesPerCall) {
    // How many that is has nothing to do with which they are, so it is exact:
    // but where the last of them have taken down a verifier that took more.
    Shorten(MostDrafts(session), draft);
    const VerifyCall call = MakeCall(session, draft);
    ++link.num_messages;
    OUTRIDER_CO_ASSIGN_OR_RETURN(
        VerifyReply reply, co_await stub_.Verify(call, session.cancellation()));
    OUTRIDER_CO_RETURN_IF_ERROR(CheckEcho(call.header, reply.header));
    ++link.num_messages;
    link.wire_bytes += reply.wire_bytes;
    link.sent_bytes += reply.sent_bytes;
    link.num_reused += reply.header.reused_length;
    link.compute_seconds += reply.header.compute_seconds;
    if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
      RecoverFrom(*miss, cache, link);
      // One that comes as another verifier takes fewer drafts is no failure.
      if (draft.length() <= MostDrafts(session)) ++num_misses;
      continue;
    }
    cache.Acknowledged(reply.header.cached_length, reply.header.incarnation);
    OUTRIDER_CO_ASSIGN_OR_RETURN(DraftScore score,
                                 codec_.Read(call, std::move(reply),
                                             {.draft = draft,
                                              .history = session.History(),
                                              .random = session.coins()}));
    link.call_seconds = watch.seconds();
    co_return ScoredDraft{.score = std::move(score), .link = link};
  }
  co_return absl::UnavailableError("the verifier keeps losing the session");
}

VerifyCall NodeVerifyClient::MakeCall(Session& session,
                                      const Draft& draft) const {
  VerifyCall call = {.header = session.NextHeader(session.verifier_cache()),
                     .draft_tokens = draft.tokens,
                     .reply_format = format_,
                     .sampling = session.sampling(),
                     .seed = session.seed(),
                     .prompt_length = session.prompt_length(),
                     .rule = session.rule(),
                     .logprobs = session.logprobs(),
                     .log_ids = session.log_ids()};
  codec_.Ask(draft, call);
  return call;
}

}  // namespace outrider
