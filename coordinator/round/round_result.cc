// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/round_result.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

absl::StatusOr<RowLogprobs> FindIn(const ScoredRow& row, TokenId token) {
  const auto found = std::find(row.tokens.begin(), row.tokens.end(), token);
  if (found == row.tokens.end()) {
    return absl::InternalError("the verifier sent no score of a token it gave");
  }
  RowScores chosen = row.scores;
  chosen.tokens = {row.scores.tokens.at(found - row.tokens.begin())};
  return ToLogprobs(chosen);
}

}  // namespace

absl::StatusOr<std::vector<RowLogprobs>> LogprobsOf(const DraftScore& score,
                                                    const Draft& draft,
                                                    const Verdict& verdict,
                                                    const Session& session) {
  std::vector<RowLogprobs> logprobs;
  if (!session.logprobs().has_value()) return logprobs;
  const auto* scored = std::get_if<std::vector<ScoredRow>>(&score.scored);
  const absl::Span<const TokenId> accepted =
      absl::MakeConstSpan(draft.tokens).first(verdict.num_accepted);
  std::vector<TokenId> tokens(accepted.begin(), accepted.end());
  tokens.push_back(verdict.next_token);
  tokens.insert(tokens.end(), score.more_tokens.begin(),
                score.more_tokens.end());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const TokenId token = tokens[i];
    if (scored != nullptr) {
      if (i >= scored->size()) {
        return absl::InternalError("the verifier sent no log-probabilities");
      }
      OUTRIDER_ASSIGN_OR_RETURN(RowLogprobs row, FindIn((*scored)[i], token));
      logprobs.push_back(std::move(row));
      continue;
    }
    const auto& rows = std::get<LogitRows>(score.scored);
    PlacedRow placed = {.row = {.logits = rows.Row(static_cast<int>(i))},
                        .history = session.History()};
    placed.history.drafts = accepted.first(i);
    if (i < draft.tokens.size()) placed.draft = draft.tokens[i];
    OUTRIDER_ASSIGN_OR_RETURN(RowLogprobs row,
                              ComputeLogprobs(placed, session.sampling(),
                                              *session.logprobs(), {token}));
    logprobs.push_back(std::move(row));
  }
  return logprobs;
}

}  // namespace outrider
