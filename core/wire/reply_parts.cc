// SPDX-License-Identifier: Apache-2.0
#include "core/wire/reply_parts.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/session/check_tokens.h"
#include "core/wire/reply_codec.h"

namespace outrider {
namespace {

// Tokens that the verifier names by itself.
absl::Status CheckNamed(absl::Span<const TokenId> tokens, int vocab_size) {
  for (const TokenId token : tokens) {
    if (token < 0 || token >= vocab_size) {
      return absl::InternalError(absl::StrCat("the verifier sent token ",
                                              AsSent(token), " and described ",
                                              vocab_size, " tokens"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WrongFormat() {
  return absl::InternalError(
      "the verifier replied in another format than the one asked for");
}

absl::Status CheckNumRows(int num_rows, const VerifyCall& call) {
  const size_t num_drafts = call.draft_tokens.size();
  if (static_cast<size_t>(num_rows) == num_drafts + 1) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the verifier sent ", num_rows,
                                          " rows for ", num_drafts, " drafts"));
}

absl::Status CheckVocabulary(const VerifyReply& reply, int vocab_size) {
  if (const auto* rows = std::get_if<LogitRows>(&reply.outcome);
      rows != nullptr && rows->vocab_size() != vocab_size) {
    return absl::InternalError(
        absl::StrCat("the verifier sent rows of ", rows->vocab_size(),
                     " tokens and described ", vocab_size));
  }
  if (const auto* verdict = std::get_if<Verdict>(&reply.outcome)) {
    OUTRIDER_RETURN_IF_ERROR(CheckNamed({verdict->next_token}, vocab_size));
    OUTRIDER_RETURN_IF_ERROR(CheckNamed(reply.more_tokens, vocab_size));
  }
  if (const auto* rows = std::get_if<std::vector<TargetRow>>(&reply.outcome)) {
    for (const TargetRow& row : *rows) {
      if (row.tail_mass() <= 0) continue;
      OUTRIDER_RETURN_IF_ERROR(CheckNamed({row.drawn_token()}, vocab_size));
    }
  }
  for (const RowScores& scores : reply.logprobs) {
    OUTRIDER_RETURN_IF_ERROR(CheckNamed(scores.top_ids, vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CheckProcessing(const VerifyCall& call, int vocab_size) {
  OUTRIDER_RETURN_IF_ERROR(Validate(call.sampling, vocab_size));
  const CacheDelta& delta = call.header.delta;
  OUTRIDER_RETURN_IF_ERROR(CheckPromptLength(
      call.prompt_length, delta.keep_length + delta.append_tokens.size()));
  if (call.rule != RuleKind::kRejection && IsLossy(call.sampling)) {
    return absl::InvalidArgumentError(
        "only the rejection rule knows a lossy_lenience: leave it out");
  }
  return CodecOf(call.reply_format).CheckRule(call.rule);
}

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

absl::Status CheckNumDraftRows(const VerifyCall& call, size_t num_supports,
                               size_t num_rows) {
  if (call.supports.size() == num_supports &&
      call.draft_rows.size() == num_rows) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      call.draft_rows.size(), " draft rows with weights and ",
      call.supports.size(), " without for ", call.draft_tokens.size(),
      " drafts: one for each, with weights for TOKENS and without for SPARSE, "
      "but none with TOKENS at temperature 0 or under the coupled rule"));
}

absl::StatusOr<std::vector<RowScores>> ScoreCandidates(
    const VerifyCall& call, const LogitRows& rows,
    absl::Span<const TokenId> committed,
    absl::Span<const TokenSeq> candidates) {
  std::vector<RowScores> scores;
  if (!call.logprobs.has_value()) return scores;
  for (size_t i = 0; i < candidates.size(); ++i) {
    PlacedRow placed = {
        .row = rows.View(static_cast<int>(i)),
        .history = {.committed = committed,
                    .drafts = absl::MakeConstSpan(call.draft_tokens).first(i),
                    .prompt_length = call.prompt_length}};
    if (i < call.draft_tokens.size()) placed.draft = call.draft_tokens[i];
    OUTRIDER_ASSIGN_OR_RETURN(
        RowScores row,
        ScoreTokens(placed, call.sampling, *call.logprobs, candidates[i]));
    scores.push_back(std::move(row));
  }
  return scores;
}

absl::Status CheckScores(const VerifyCall& call,
                         absl::Span<const TokenSeq> candidates,
                         absl::Span<const RowScores> scores) {
  if (!call.logprobs.has_value()) return absl::OkStatus();
  const size_t num_top = call.logprobs->num_top;
  bool fits = scores.size() == candidates.size();
  for (size_t i = 0; fits && i < candidates.size(); ++i) {
    fits = scores[i].tokens.size() == candidates[i].size() &&
           scores[i].top_ids.size() <= num_top &&
           scores[i].top_scores.size() == scores[i].top_ids.size();
  }
  if (fits) return absl::OkStatus();
  return absl::InternalError(
      "the verifier's log-probabilities do not fit its rows; one of another "
      "version gives them with reply_format FULL");
}

std::vector<ScoredRow> JoinScores(const VerifyCall& call,
                                  std::vector<TokenSeq> candidates,
                                  std::vector<RowScores> scores) {
  std::vector<ScoredRow> joined;
  if (!call.logprobs.has_value()) return joined;
  for (size_t i = 0; i < candidates.size(); ++i) {
    joined.push_back({std::move(candidates[i]), std::move(scores[i])});
  }
  return joined;
}

}  // namespace outrider
