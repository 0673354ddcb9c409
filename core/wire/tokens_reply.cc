// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/ask_rows.h"
#include "core/sampling/make_rule.h"
#include "core/sampling/score_draft.h"
#include "core/wire/reply_codecs.h"
#include "core/wire/reply_parts.h"

namespace outrider {
namespace {

// At temperature 0 the target's row is one-hot, and every q that allows the
// draft gives the same verdict; the coupled rule does not look at q.
bool NeedsDraftRows(const VerifyCall& call) {
  return !IsGreedy(call.sampling) && call.rule != RuleKind::kCoupled;
}

// The draft as it was drawn, as far as the verdict depends on it.
Draft DraftOf(const VerifyCall& call, uint64_t start) {
  if (!NeedsDraftRows(call)) return Draft::OneHot(start, call.draft_tokens);
  return {.start = start,
          .tokens = call.draft_tokens,
          .distributions = call.draft_rows};
}

// The same, of the call's own rows and tokens.
DraftBlock JudgedBlock(const VerifyCall& call,
                       absl::Span<const TokenId> committed) {
  DraftBlock block = {.start = committed.size(),
                      .rule = call.rule,
                      .history = {.committed = committed,
                                  .drafts = call.draft_tokens,
                                  .prompt_length = call.prompt_length}};
  block.supports.reserve(call.draft_tokens.size());
  for (size_t i = 0; i < call.draft_tokens.size(); ++i) {
    block.supports.push_back(
        NeedsDraftRows(call) ? call.draft_rows[i].support()
                             : absl::MakeConstSpan(&call.draft_tokens[i], 1));
  }
  return block;
}

// The one token that each row gave, where somebody asks for its score.
std::vector<TokenSeq> TokensOf(const VerifyCall& call, const Verdict& verdict,
                               absl::Span<const TokenId> more = {}) {
  std::vector<TokenSeq> tokens;
  if (!call.logprobs.has_value()) return tokens;
  for (int i = 0; i < verdict.num_accepted; ++i) {
    tokens.push_back({call.draft_tokens[i]});
  }
  tokens.push_back({verdict.next_token});
  for (const TokenId token : more) tokens.push_back({token});
  return tokens;
}

}  // namespace

void TokensReply::Ask(const Draft& draft, VerifyCall& call) const {
  if (NeedsDraftRows(call)) call.draft_rows = draft.distributions;
}

absl::Status TokensReply::Check(const VerifyCall& call, int vocab_size) const {
  OUTRIDER_RETURN_IF_ERROR(CheckProcessing(call, vocab_size));
  const size_t num_needed = NeedsDraftRows(call) ? call.draft_tokens.size() : 0;
  OUTRIDER_RETURN_IF_ERROR(
      CheckNumDraftRows(call, /*num_supports=*/0, /*num_rows=*/num_needed));
  for (size_t i = 0; i < num_needed; ++i) {
    OUTRIDER_RETURN_IF_ERROR(CheckSupport(call.draft_rows[i].support(),
                                          call.draft_tokens[i], vocab_size));
  }
  return absl::OkStatus();
}

std::vector<RowQuestion> TokensReply::QuestionsOf(const VerifyCall& call,
                                                  const Before& before,
                                                  std::optional<uint64_t> seed,
                                                  int vocab_size) const {
  DraftBlock block = JudgedBlock(call, before.tokens);
  block.start = before.length;
  block.logprobs = call.logprobs;
  return AskRows(block, call.sampling, seed, vocab_size);
}

absl::StatusOr<VerifyReply> TokensReply::Answer(
    const VerifyCall& call, LogitRows rows, absl::Span<const TokenId> committed,
    RandomSource& random) const {
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::vector<TargetRow> target,
      ScoreDraft(rows.Views(), JudgedBlock(call, committed), call.sampling,
                 random));
  const Verdict verdict =
      MakeRule(call.rule, call.sampling.lossy_lenience)
          ->Judge(DraftOf(call, committed.size()), target, random);
  VerifyReply reply = {.outcome = verdict};
  OUTRIDER_ASSIGN_OR_RETURN(
      reply.logprobs,
      ScoreCandidates(call, rows, committed, TokensOf(call, verdict)));
  return reply;
}

absl::Status TokensReply::CheckReply(const VerifyCall& call,
                                     const VerifyReply& reply) const {
  const auto* verdict = std::get_if<Verdict>(&reply.outcome);
  if (verdict == nullptr) return WrongFormat();
  const int num_drafts = static_cast<int>(call.draft_tokens.size());
  if (verdict->num_accepted < 0 || verdict->num_accepted > num_drafts) {
    return absl::InternalError(absl::StrCat("the verifier accepted ",
                                            verdict->num_accepted, " of ",
                                            num_drafts, " drafts"));
  }
  const auto num_more = static_cast<int>(reply.more_tokens.size());
  if (num_more > call.max_more_tokens) {
    return absl::InternalError(absl::StrCat("the verifier went on with ",
                                            num_more, " tokens, and may with ",
                                            call.max_more_tokens));
  }
  return CheckScores(call, TokensOf(call, *verdict, reply.more_tokens),
                     reply.logprobs);
}

absl::StatusOr<DraftScore> TokensReply::Read(const VerifyCall& call,
                                             VerifyReply reply,
                                             const Asker& /*asker*/) const {
  OUTRIDER_RETURN_IF_ERROR(CheckReply(call, reply));
  const auto& verdict = std::get<Verdict>(reply.outcome);
  DraftScore score = {.verdict = verdict,
                      .more_tokens = std::move(reply.more_tokens)};
  score.scored = JoinScores(call, TokensOf(call, verdict, score.more_tokens),
                            std::move(reply.logprobs));
  return score;
}

}  // namespace outrider
