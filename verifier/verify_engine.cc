// SPDX-License-Identifier: Apache-2.0
#include "verifier/verify_engine.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/bfloat16.h"
#include "core/base/status_macros.h"
#include "core/sampling/coins.h"
#include "core/sampling/make_rule.h"
#include "core/sampling/process.h"
#include "core/sampling/score_draft.h"
#include "core/session/check_tokens.h"

namespace outrider {

namespace {

absl::Status CheckSupport(absl::Span<const TokenId> support, TokenId draft,
                          int vocab_size) {
  OUTRIDER_RETURN_IF_ERROR(CheckTokens(support, vocab_size));
  for (size_t i = 1; i < support.size(); ++i) {
    if (support[i - 1] >= support[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the ids of a draft row must ascend, but ", support[i],
                       " follows ", support[i - 1]));
    }
  }
  if (!std::binary_search(support.begin(), support.end(), draft)) {
    return absl::InvalidArgumentError(
        absl::StrCat("draft token ", draft, " is not in its own draft row"));
  }
  return absl::OkStatus();
}

// That there is one row for each draft, and the draft in it.
absl::Status CheckDraftRows(const VerifyCall& call, int vocab_size) {
  const bool sparse = call.reply_format == ReplyFormat::kSparse;
  const size_t num_rows =
      sparse ? call.supports.size() : call.draft_rows.size();
  const bool needs_rows =
      sparse || (!IsGreedy(call.sampling) && call.rule != RuleKind::kCoupled);
  if (num_rows != (needs_rows ? call.draft_tokens.size() : 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        num_rows, " draft rows for ", call.draft_tokens.size(),
        " drafts: one for each, but none with TOKENS at temperature 0 or under "
        "the coupled rule"));
  }
  for (size_t i = 0; i < num_rows; ++i) {
    OUTRIDER_RETURN_IF_ERROR(
        CheckSupport(sparse ? absl::MakeConstSpan(call.supports[i])
                            : call.draft_rows[i].support(),
                     call.draft_tokens[i], vocab_size));
  }
  return absl::OkStatus();
}

// The draft as it was drawn. At temperature 0 the target's row is one-hot, and
// every q that allows the draft gives the same verdict; the coupled rule does
// not look at q.
Draft DraftOf(const VerifyCall& call, uint64_t start) {
  Draft draft = {.start = start,
                 .tokens = call.draft_tokens,
                 .distributions = call.draft_rows};
  if (draft.distributions.empty()) {
    for (const TokenId token : draft.tokens) {
      draft.distributions.push_back(Distribution::OneHot(token));
    }
  }
  return draft;
}

LogitRows RoundedToBFloat16(const LogitRows& rows) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(rows.num_rows()) * rows.vocab_size());
  for (const absl::Span<const float> row : rows.Rows()) {
    for (const float logit : row) values.push_back(ToFloat(ToBFloat16(logit)));
  }
  return LogitRows::FromVector(std::move(values), rows.vocab_size());
}

// The tokens that each row may give to the text, by the outcome.
std::vector<TokenSeq> CandidatesOf(const VerifyCall& call,
                                   const VerifyReply& reply) {
  std::vector<TokenSeq> candidates;
  if (const auto* verdict = std::get_if<Verdict>(&reply.outcome)) {
    for (int i = 0; i < verdict->num_accepted; ++i) {
      candidates.push_back({call.draft_tokens[i]});
    }
    candidates.push_back({verdict->next_token});
    return candidates;
  }
  for (const TargetRow& row : std::get<std::vector<TargetRow>>(reply.outcome)) {
    TokenSeq& tokens =
        candidates.emplace_back(row.support().begin(), row.support().end());
    if (row.tail_mass() > 0) tokens.push_back(row.tail_token());
  }
  return candidates;
}

}  // namespace

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

  VerifyReply reply = {.header = {.session = call.header.session,
                                  .incarnation = call.header.incarnation,
                                  .step = call.header.step}};
  if (const Miss* miss = std::get_if<Miss>(&admitted)) {
    reply.header.cached_length = miss->cached_length;
    reply.outcome = *miss;
    return reply;
  }
  const auto& admission = std::get<SessionTable::Admission>(admitted);
  for (const SessionId& evicted : admission.evicted) model_->Release(evicted);

  absl::StatusOr<LogitRows> rows = Score(call);
  absl::Status status = rows.status();
  if (status.ok()) status = Answer(call, *std::move(rows), reply);
  if (!status.ok()) {
    sessions_.Drop(call.header.session);
    model_->Release(call.header.session);
    return status;
  }
  reply.header.incarnation = admission.incarnation;
  reply.header.cached_length = sessions_.CachedLength(call.header.session);
  return reply;
}

absl::Status VerifyEngine::Check(const VerifyCall& call) const {
  const int num_drafts = static_cast<int>(call.draft_tokens.size());
  if (num_drafts > options_.max_draft_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", options_.max_draft_tokens,
                     " draft tokens a round, not ", num_drafts));
  }
  // Drafts take up context too.
  OUTRIDER_RETURN_IF_ERROR(
      CheckDelta(call.header.delta, options_.vocab_size,
                 model_->info().context_length - num_drafts));
  OUTRIDER_RETURN_IF_ERROR(CheckTokens(call.draft_tokens, options_.vocab_size));
  if (IsFull(call.reply_format)) return absl::OkStatus();
  OUTRIDER_RETURN_IF_ERROR(Validate(call.sampling, options_.vocab_size));
  const CacheDelta& delta = call.header.delta;
  OUTRIDER_RETURN_IF_ERROR(CheckPromptLength(
      call.prompt_length, delta.keep_length + delta.append_tokens.size()));
  if (call.rule == RuleKind::kCoupled &&
      call.reply_format == ReplyFormat::kSparse) {
    return absl::InvalidArgumentError(
        "the coupled rule needs reply_format TOKENS or FULL, not SPARSE");
  }
  if (call.rule != RuleKind::kRejection && IsLossy(call.sampling)) {
    return absl::InvalidArgumentError(
        "only the rejection rule knows a lossy_lenience: leave it out");
  }
  return CheckDraftRows(call, options_.vocab_size);
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

absl::Status VerifyEngine::Answer(const VerifyCall& call, LogitRows rows,
                                  VerifyReply& reply) const {
  if (IsFull(call.reply_format)) {
    reply.is_bfloat16 = call.reply_format == ReplyFormat::kFullBFloat16;
    if (reply.is_bfloat16) rows = RoundedToBFloat16(rows);
    // As processing them would: a cache that gave such a row is not kept.
    for (const absl::Span<const float> row : rows.Rows()) {
      OUTRIDER_RETURN_IF_ERROR(CheckLogits(row));
    }
    reply.outcome = std::move(rows);
    return absl::OkStatus();
  }
  const CacheDelta& delta = call.header.delta;
  const uint64_t start = delta.keep_length + delta.append_tokens.size();
  const std::unique_ptr<RandomSource> random =
      options_.random_source ? options_.random_source(call.seed)
                             : std::make_unique<Coins>(call.seed);
  TokenHistory history = {
      .committed = sessions_.Tokens(call.header.session)->tokens().first(start),
      .prompt_length = call.prompt_length};
  if (call.reply_format == ReplyFormat::kSparse) {
    history.drafts = call.draft_tokens;
    const DraftBlock block = {
        .start = start,
        .supports = {call.supports.begin(), call.supports.end()},
        .history = history};
    OUTRIDER_ASSIGN_OR_RETURN(
        std::vector<TargetRow> target,
        ScoreDraft(rows.Rows(), block, call.sampling, *random));
    for (TargetRow& row : target) row.DrawTail();
    reply.outcome = std::move(target);
    return AddLogprobs(call, rows, history, reply);
  }
  const Draft draft = DraftOf(call, start);
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::vector<TargetRow> target,
      ScoreDraft(rows.Rows(), DraftBlock::Of(draft, history, call.rule),
                 call.sampling, *random));
  reply.outcome = MakeRule(call.rule, call.sampling.lossy_lenience)
                      ->Judge(draft, target, *random);
  return AddLogprobs(call, rows, history, reply);
}

absl::Status VerifyEngine::AddLogprobs(const VerifyCall& call,
                                       const LogitRows& rows,
                                       const TokenHistory& history,
                                       VerifyReply& reply) const {
  if (!call.logprobs.has_value()) return absl::OkStatus();
  const std::vector<TokenSeq> candidates = CandidatesOf(call, reply);
  for (size_t i = 0; i < candidates.size(); ++i) {
    TokenHistory before = history;
    before.drafts = absl::MakeConstSpan(call.draft_tokens).first(i);
    OUTRIDER_ASSIGN_OR_RETURN(
        RowScores scores,
        ScoreTokens(rows.Row(static_cast<int>(i)), call.sampling, before,
                    *call.logprobs, candidates[i]));
    reply.logprobs.push_back(std::move(scores));
  }
  return absl::OkStatus();
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
