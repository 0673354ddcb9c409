// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status_macros.h"
#include "core/sampling/ask_rows.h"
#include "core/sampling/score_draft.h"
#include "core/wire/reply_codecs.h"
#include "core/wire/reply_parts.h"

namespace outrider {
namespace {

// The tokens that each row may give to the text: those of the draft's row, any
// of which may replace it, and the tail token.
std::vector<TokenSeq> CandidatesOf(absl::Span<const TargetRow> rows) {
  std::vector<TokenSeq> candidates;
  for (const TargetRow& row : rows) {
    TokenSeq& tokens =
        candidates.emplace_back(row.support().begin(), row.support().end());
    if (row.tail_mass() > 0) tokens.push_back(row.drawn_token());
  }
  return candidates;
}

DraftBlock BlockOf(const VerifyCall& call,
                   absl::Span<const TokenId> committed) {
  return {.start = committed.size(),
          .supports = {call.supports.begin(), call.supports.end()},
          .history = {.committed = committed,
                      .drafts = call.draft_tokens,
                      .prompt_length = call.prompt_length}};
}

}  // namespace

absl::Status SparseReply::CheckRule(RuleKind rule) const {
  if (rule != RuleKind::kCoupled) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the coupled rule needs reply_format TOKENS or FULL, not SPARSE");
}

void SparseReply::Ask(const Draft& draft, VerifyCall& call) const {
  for (const Distribution& q : draft.distributions) {
    call.supports.emplace_back(q.support().begin(), q.support().end());
  }
}

absl::Status SparseReply::Check(const VerifyCall& call, int vocab_size) const {
  OUTRIDER_RETURN_IF_ERROR(CheckProcessing(call, vocab_size));
  OUTRIDER_RETURN_IF_ERROR(CheckNumDraftRows(
      call, /*num_supports=*/call.draft_tokens.size(), /*num_rows=*/0));
  for (size_t i = 0; i < call.supports.size(); ++i) {
    OUTRIDER_RETURN_IF_ERROR(
        CheckSupport(call.supports[i], call.draft_tokens[i], vocab_size));
  }
  return absl::OkStatus();
}

std::vector<RowQuestion> SparseReply::QuestionsOf(const VerifyCall& call,
                                                  const Before& before,
                                                  std::optional<uint64_t> seed,
                                                  int vocab_size) const {
  // All of a support is scored, and a cut row's answer need not tell what can
  // not come there.
  if (call.logprobs.has_value() && !IsDrawn(call.sampling)) return {};
  DraftBlock block = BlockOf(call, before.tokens);
  block.start = before.length;
  block.logprobs = call.logprobs;
  return AskRows(block, call.sampling, seed, vocab_size);
}

absl::StatusOr<VerifyReply> SparseReply::Answer(
    const VerifyCall& call, LogitRows rows, absl::Span<const TokenId> committed,
    RandomSource& random) const {
  OUTRIDER_ASSIGN_OR_RETURN(std::vector<TargetRow> target,
                            ScoreDraft(rows.Views(), BlockOf(call, committed),
                                       call.sampling, random));
  for (TargetRow& row : target) row.Draw();
  VerifyReply reply;
  OUTRIDER_ASSIGN_OR_RETURN(
      reply.logprobs,
      ScoreCandidates(call, rows, committed, CandidatesOf(target)));
  reply.outcome = std::move(target);
  return reply;
}

absl::Status SparseReply::CheckReply(const VerifyCall& call,
                                     const VerifyReply& reply) const {
  const auto* rows = std::get_if<std::vector<TargetRow>>(&reply.outcome);
  if (rows == nullptr) return WrongFormat();
  OUTRIDER_RETURN_IF_ERROR(CheckNumRows(static_cast<int>(rows->size()), call));
  return CheckScores(call, CandidatesOf(*rows), reply.logprobs);
}

absl::StatusOr<DraftScore> SparseReply::Read(const VerifyCall& call,
                                             VerifyReply reply,
                                             const Asker& /*asker*/) const {
  OUTRIDER_RETURN_IF_ERROR(CheckReply(call, reply));
  auto& rows = std::get<std::vector<TargetRow>>(reply.outcome);
  DraftScore score;
  score.scored =
      JoinScores(call, CandidatesOf(rows), std::move(reply.logprobs));
  score.rows = std::move(rows);
  return score;
}

}  // namespace outrider
