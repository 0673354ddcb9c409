// SPDX-License-Identifier: Apache-2.0
#include "verifier/verify_engine.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/coins.h"
#include "core/session/check_tokens.h"
#include "core/wire/reply_codec.h"

namespace outrider {

VerifyEngine::VerifyEngine(std::unique_ptr<CausalLm> model, Options options)
    : model_(std::move(model)),
      options_(std::move(options)),
      sessions_(options_.sessions) {}

absl::StatusOr<VerifyReply> VerifyEngine::Verify(
    const VerifyCall& call, uint64_t content_digest,
    SessionTable::Clock::time_point now) {
  OUTRIDER_RETURN_IF_ERROR(Check(call));
  const int num_drafts = static_cast<int>(call.draft_tokens.size());
  OUTRIDER_ASSIGN_OR_RETURN(
      const auto admitted,
      sessions_.Admit(call.header, content_digest, num_drafts, now));

  const ReplyHeader echo = {.session = call.header.session,
                            .incarnation = call.header.incarnation,
                            .step = call.header.step};
  if (const Miss* miss = std::get_if<Miss>(&admitted)) {
    VerifyReply reply = {.header = echo, .outcome = *miss};
    reply.header.cached_length = miss->cached_length;
    return reply;
  }
  const auto& admission = std::get<SessionTable::Admission>(admitted);
  for (const SessionId& evicted : admission.evicted) model_->Release(evicted);

  absl::StatusOr<VerifyReply> reply = Answer(call);
  if (!reply.ok()) {
    sessions_.Drop(call.header.session);
    model_->Release(call.header.session);
    return reply;
  }
  reply->header = echo;
  reply->header.incarnation = admission.incarnation;
  reply->header.cached_length = sessions_.CachedLength(call.header.session);
  return reply;
}

absl::Status VerifyEngine::Check(const VerifyCall& call) const {
  const int num_drafts = static_cast<int>(call.draft_tokens.size());
  if (num_drafts > options_.max_draft_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", options_.max_draft_tokens,
                     " draft tokens a round, not ", num_drafts));
  }
  OUTRIDER_RETURN_IF_ERROR(CheckDelta(call.header.delta, options_.vocab_size,
                                      model_->info().context_length,
                                      call.draft_tokens.size()));
  OUTRIDER_RETURN_IF_ERROR(CheckTokens(call.draft_tokens, options_.vocab_size));
  return CodecOf(call.reply_format).Check(call, options_.vocab_size);
}

absl::StatusOr<LogitRows> VerifyEngine::Score(const VerifyCall& call) {
  const CacheDelta& delta = call.header.delta;
  std::vector<TokenId> tokens = delta.append_tokens;
  tokens.insert(tokens.end(), call.draft_tokens.begin(),
                call.draft_tokens.end());
  const Extension extension = {
      .session = call.header.session,
      .keep_length = delta.keep_length,
      .tokens = tokens,
      .num_rows = static_cast<int>(call.draft_tokens.size()) + 1};
  OUTRIDER_ASSIGN_OR_RETURN(const LogitRows rows,
                            model_->Extend({extension})[0]);
  sessions_.Record(call.header.session, delta.keep_length, tokens);
  return rows.WithVocabSize(options_.vocab_size);
}

absl::StatusOr<VerifyReply> VerifyEngine::Answer(const VerifyCall& call) {
  OUTRIDER_ASSIGN_OR_RETURN(LogitRows rows, Score(call));
  const std::unique_ptr<RandomSource> random =
      options_.random_source ? options_.random_source(call.seed)
                             : std::make_unique<Coins>(call.seed);
  const CacheDelta& delta = call.header.delta;
  const size_t num_committed = delta.keep_length + delta.append_tokens.size();
  return CodecOf(call.reply_format)
      .Answer(
          call, std::move(rows),
          sessions_.Tokens(call.header.session)->tokens().first(num_committed),
          *random);
}

bool VerifyEngine::Truncate(const RequestHeader& header, int length) {
  return sessions_.Truncate(header, length);
}

bool VerifyEngine::Release(const RequestHeader& header) {
  const bool released = sessions_.Release(header);
  if (released) model_->Release(header.session);
  return released;
}

void VerifyEngine::Expire(SessionTable::Clock::time_point now) {
  for (const SessionId& session : sessions_.Expire(now)) {
    model_->Release(session);
  }
}

}  // namespace outrider
