// SPDX-License-Identifier: Apache-2.0
#include "drafter/draft_engine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/coins.h"
#include "core/session/check_tokens.h"

namespace outrider {

DraftEngine::DraftEngine(std::unique_ptr<DraftStrategy> strategy,
                         Options options)
    : strategy_(std::move(strategy)),
      options_(std::move(options)),
      sessions_(options_.sessions) {}

absl::StatusOr<DraftReply> DraftEngine::Draft(
    const DraftCall& call, uint64_t content_digest,
    SessionTable::Clock::time_point now) {
  OUTRIDER_RETURN_IF_ERROR(Check(call));
  OUTRIDER_ASSIGN_OR_RETURN(
      const auto admitted,
      sessions_.Admit(call.header, content_digest, call.max_draft_tokens, now));

  DraftReply reply = {.header = {.session = call.header.session,
                                 .incarnation = call.header.incarnation,
                                 .step = call.header.step}};
  if (const Miss* miss = std::get_if<Miss>(&admitted)) {
    reply.header.cached_length = miss->cached_length;
    reply.outcome = *miss;
    return reply;
  }
  const auto& admission = std::get<SessionTable::Admission>(admitted);
  for (const SessionId& evicted : admission.evicted) {
    strategy_->Release(evicted);
  }
  absl::StatusOr<Proposal> proposal = Propose(call);
  if (!proposal.ok()) {
    sessions_.Drop(call.header.session);
    strategy_->Release(call.header.session);
    return proposal.status();
  }
  reply.header.incarnation = admission.incarnation;
  reply.header.cached_length = sessions_.CachedLength(call.header.session);
  reply.outcome = std::move(proposal->draft);
  return reply;
}

absl::Status DraftEngine::Check(const DraftCall& call) const {
  OUTRIDER_RETURN_IF_ERROR(Validate(call.sampling, options_.vocab_size));
  OUTRIDER_RETURN_IF_ERROR(CheckDelta(call.header.delta, options_.vocab_size,
                                      options_.context_length));
  if (call.max_draft_tokens < 0 ||
      call.max_draft_tokens > options_.max_draft_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_draft_tokens must be between 0 and ", options_.max_draft_tokens,
        ", not ", call.max_draft_tokens));
  }
  OUTRIDER_RETURN_IF_ERROR(Validate(call.options, options_.vocab_size));
  const CacheDelta& delta = call.header.delta;
  const size_t length = delta.keep_length + delta.append_tokens.size();
  return CheckPromptLength(call.prompt_length, length);
}

absl::StatusOr<Proposal> DraftEngine::Propose(const DraftCall& call) {
  const SessionId& session = call.header.session;
  const CacheDelta& delta = call.header.delta;
  sessions_.Record(session, delta.keep_length, delta.append_tokens);
  const absl::Span<const TokenId> committed =
      sessions_.Tokens(session)->tokens();

  const std::unique_ptr<RandomSource> random =
      options_.random_source ? options_.random_source(call.seed)
                             : std::make_unique<Coins>(call.seed);
  // At the context's end fewer are drafted: that depends on lengths alone.
  const int room = options_.context_length - static_cast<int>(committed.size());
  const DraftContext context = {
      .session = session,
      .committed = committed,
      .prompt_length = call.prompt_length,
      .keep_length = delta.keep_length,
      .max_draft_tokens = std::min(call.max_draft_tokens, room),
      .options = call.options,
      .sampling = call.sampling,
      .rule = call.rule,
      .step = call.header.step,
      .random = random.get()};
  OUTRIDER_ASSIGN_OR_RETURN(Proposal proposal, strategy_->Propose(context));
  const int num_committed = static_cast<int>(committed.size());
  sessions_.Record(session, num_committed,
                   absl::MakeConstSpan(proposal.draft.tokens)
                       .first(proposal.num_cached_drafts));
  return proposal;
}

bool DraftEngine::Truncate(const RequestHeader& header, int length) {
  return sessions_.Truncate(header, length);
}

bool DraftEngine::Release(const RequestHeader& header) {
  const bool released = sessions_.Release(header);
  if (released) strategy_->Release(header.session);
  return released;
}

void DraftEngine::Expire(SessionTable::Clock::time_point now) {
  for (const SessionId& session : sessions_.Expire(now)) {
    strategy_->Release(session);
  }
}

}  // namespace outrider
