// SPDX-License-Identifier: Apache-2.0
#include "coordinator/node_verify_client.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/miss_recovery.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/sampling/process.h"

namespace outrider {

Task<absl::StatusOr<std::vector<TargetRow>>> NodeVerifyClient::Score(
    Session& session, const Draft& draft) {
  RoundStats::Link& link = session.stats().verifier;
  const ScopedTimer timer(link.call_seconds);
  CacheMirror& cache = session.verifier_cache();
  for (int attempt = 0; attempt < kMaxMissesPerCall; ++attempt) {
    const VerifyCall call = {.header = session.NextHeader(cache),
                             .draft_tokens = draft.tokens,
                             .reply_format = ReplyFormat::kFull,
                             .sampling = session.sampling(),
                             .seed = session.seed(),
                             .prompt_length = session.prompt_length(),
                             .traceparent = session.traceparent()};
    OUTRIDER_CO_ASSIGN_OR_RETURN(
        const VerifyReply reply,
        co_await stub_.Verify(call, session.cancellation()));
    OUTRIDER_CO_RETURN_IF_ERROR(CheckEcho(call.header, reply.header));
    link.wire_bytes += reply.wire_bytes;
    link.sent_bytes += reply.sent_bytes;
    link.compute_seconds += reply.header.compute_seconds;
    if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
      RecoverFrom(*miss, cache, link);
      continue;
    }
    cache.GrewTo(reply.header.cached_length, reply.header.incarnation);
    co_return ProcessRows(std::get<LogitRows>(reply.outcome), draft, session);
  }
  co_return absl::UnavailableError("the verifier keeps losing the session");
}

absl::StatusOr<std::vector<TargetRow>> ProcessRows(const LogitRows& rows,
                                                   const Draft& draft,
                                                   Session& session) {
  if (rows.num_rows() != draft.length() + 1) {
    return absl::InternalError(absl::StrCat("the verifier sent ",
                                            rows.num_rows(), " rows for ",
                                            draft.length(), " drafts"));
  }
  std::vector<TargetRow> target;
  target.reserve(rows.num_rows());
  for (int i = 0; i < rows.num_rows(); ++i) {
    OUTRIDER_ASSIGN_OR_RETURN(
        Distribution p,
        Process(rows.Row(i),
                OUTRIDER_MUTANT(M2, session.sampling(), SamplingParams())));
    const absl::Span<const TokenId> support =
        i < draft.length() ? draft.distributions[i].support()
                           : absl::Span<const TokenId>();
    target.push_back(TargetRow::FromDense(std::move(p), support,
                                          draft.start + i, session.coins()));
  }
  return target;
}

}  // namespace outrider
