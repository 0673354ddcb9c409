// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/node_verify_client.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/peers/miss_recovery.h"
#include "core/base/status_macros.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/score_draft.h"

namespace outrider {
namespace {

// By the time it is asked, the drafts before a token have been committed.
Session::LogprobSource LogprobsOf(const LogitRows& rows, uint64_t start,
                                  const Session& session) {
  return [rows, start, &session](int row, TokenId token) {
    TokenHistory history = session.History();
    history.committed = history.committed.first(start + row);
    return ComputeLogprobs(rows.Row(row), session.sampling(), history,
                           *session.logprobs(), {token});
  };
}

// The same, of scores that the verifier sent: each row has those of its support
// and of one token more, where it may give one.
Session::LogprobSource LogprobsOf(std::vector<RowScores> scores,
                                  std::vector<TokenSeq> supports) {
  return [scores = std::move(scores), supports = std::move(supports)](
             int row, TokenId token) -> absl::StatusOr<RowLogprobs> {
    const TokenSeq& support = supports.at(row);
    const auto found = std::lower_bound(support.begin(), support.end(), token);
    const bool is_there = found != support.end() && *found == token;
    RowScores chosen = scores.at(row);
    chosen.tokens = {
        chosen.tokens.at(is_there ? found - support.begin() : support.size())};
    return ToLogprobs(chosen);
  };
}

// Of each row that may give a token: its support, and whether it has a token
// beside it.
struct ScoredRows {
  std::vector<TokenSeq> supports = {};
  std::vector<bool> has_other = {};
};

ScoredRows RowsOf(const VerifyReply& reply) {
  ScoredRows rows;
  if (const auto* verdict = std::get_if<Verdict>(&reply.outcome)) {
    rows.supports.resize(verdict->num_accepted + 1);
    rows.has_other.resize(verdict->num_accepted + 1, true);
  } else if (const auto* target =
                 std::get_if<std::vector<TargetRow>>(&reply.outcome)) {
    for (const TargetRow& row : *target) {
      rows.supports.emplace_back(row.support().begin(), row.support().end());
      rows.has_other.push_back(row.tail_mass() > 0);
    }
  }
  return rows;
}

// Leaves the session the scores of the reply, if they fit its rows.
absl::Status KeepScores(const VerifyReply& reply, Session& session) {
  ScoredRows rows = RowsOf(reply);
  const size_t num_top = session.logprobs()->num_top;
  bool fits = reply.logprobs.size() == rows.supports.size();
  for (size_t i = 0; fits && i < rows.supports.size(); ++i) {
    const RowScores& scores = reply.logprobs[i];
    fits =
        scores.tokens.size() == rows.supports[i].size() + rows.has_other[i] &&
        scores.top_ids.size() <= num_top &&
        scores.top_scores.size() == scores.top_ids.size();
  }
  if (!fits) {
    return absl::InternalError(
        "the verifier's log-probabilities do not fit its rows; one of another "
        "version gives them with reply_format FULL");
  }
  session.set_logprob_source(
      LogprobsOf(reply.logprobs, std::move(rows.supports)));
  return absl::OkStatus();
}

}  // namespace

Task<absl::StatusOr<DraftScore>> NodeVerifyClient::Score(Session& session,
                                                         const Draft& draft) {
  RoundStats::Link& link = session.stats().verifier;
  const ScopedTimer timer(link.call_seconds);
  CacheMirror& cache = session.verifier_cache();
  for (int attempt = 0; attempt < kMaxMissesPerCall; ++attempt) {
    const VerifyCall call = MakeCall(session, draft);
    ++link.num_messages;
    OUTRIDER_CO_ASSIGN_OR_RETURN(
        VerifyReply reply, co_await stub_.Verify(call, session.cancellation()));
    OUTRIDER_CO_RETURN_IF_ERROR(CheckEcho(call.header, reply.header));
    ++link.num_messages;
    link.wire_bytes += reply.wire_bytes;
    link.sent_bytes += reply.sent_bytes;
    link.compute_seconds += reply.header.compute_seconds;
    if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
      RecoverFrom(*miss, cache, link);
      continue;
    }
    cache.GrewTo(reply.header.cached_length, reply.header.incarnation);
    co_return Read(std::move(reply), draft, session);
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
                     .log_ids = session.log_ids()};
  if (format_ == ReplyFormat::kSparse) {
    for (const Distribution& q : draft.distributions) {
      call.supports.emplace_back(q.support().begin(), q.support().end());
    }
  }
  // At temperature 0, and under the coupled rule, a draft stands or falls with
  // the target's own token alone.
  if (format_ == ReplyFormat::kTokens && !IsGreedy(session.sampling()) &&
      session.rule() != RuleKind::kCoupled) {
    call.draft_rows = draft.distributions;
  }
  if (!IsFull(format_)) call.logprobs = session.logprobs();
  return call;
}

absl::StatusOr<DraftScore> NodeVerifyClient::Read(VerifyReply reply,
                                                  const Draft& draft,
                                                  Session& session) const {
  const int num_rows = draft.length() + 1;
  const auto wrong_rows = [&](int count) {
    return absl::InternalError(absl::StrCat(
        "the verifier sent ", count, " rows for ", draft.length(), " drafts"));
  };
  if (const auto* full = std::get_if<LogitRows>(&reply.outcome);
      full != nullptr && IsFull(format_)) {
    if (full->num_rows() != num_rows) return wrong_rows(full->num_rows());
    OUTRIDER_ASSIGN_OR_RETURN(
        std::vector<TargetRow> rows,
        ScoreDraft(full->Rows(),
                   DraftBlock::Of(draft, session.History(), session.rule()),
                   session.sampling(), session.coins()));
    if (session.logprobs().has_value()) {
      session.set_logprob_source(LogprobsOf(*full, draft.start, session));
    }
    return DraftScore{.rows = std::move(rows)};
  }
  if (auto* rows = std::get_if<std::vector<TargetRow>>(&reply.outcome);
      rows != nullptr && format_ == ReplyFormat::kSparse) {
    const int count = static_cast<int>(rows->size());
    if (count != num_rows) return wrong_rows(count);
    if (session.logprobs().has_value()) {
      OUTRIDER_RETURN_IF_ERROR(KeepScores(reply, session));
    }
    return DraftScore{.rows = std::move(*rows)};
  }
  if (const auto* verdict = std::get_if<Verdict>(&reply.outcome);
      verdict != nullptr && format_ == ReplyFormat::kTokens) {
    if (verdict->num_accepted < 0 || verdict->num_accepted > draft.length()) {
      return absl::InternalError(absl::StrCat("the verifier accepted ",
                                              verdict->num_accepted, " of ",
                                              draft.length(), " drafts"));
    }
    if (session.logprobs().has_value()) {
      OUTRIDER_RETURN_IF_ERROR(KeepScores(reply, session));
    }
    return DraftScore{.verdict = *verdict};
  }
  return absl::InternalError(
      "the verifier replied in another format than the one asked for");
}

}  // namespace outrider
