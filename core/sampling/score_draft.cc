// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/score_draft.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/sampling/lenience.h"
#include "core/sampling/process.h"

namespace outrider {

DraftBlock DraftBlock::Of(const Draft& draft, const TokenHistory& before,
                          RuleKind rule) {
  DraftBlock block = {.start = draft.start, .rule = rule, .history = before};
  block.history.drafts = draft.tokens;
  for (const Distribution& q : draft.distributions) {
    block.supports.push_back(q.support());
  }
  return block;
}

absl::StatusOr<std::vector<TargetRow>> ScoreDraft(
    absl::Span<const absl::Span<const float>> logits, const DraftBlock& block,
    const SamplingParams& params, RandomSource& random) {
  const size_t num_drafts = block.supports.size();
  if (logits.size() != num_drafts + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        logits.size(), " target rows do not fit ", num_drafts, " drafts"));
  }
  if (block.history.drafts.size() != num_drafts) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_drafts, " draft rows do not fit ",
                     block.history.drafts.size(), " drafts"));
  }
  std::vector<TargetRow> target;
  target.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    TokenHistory history = block.history;
    history.drafts = history.drafts.first(i);
    OUTRIDER_ASSIGN_OR_RETURN(
        Distribution p,
        Process(logits[i], OUTRIDER_MUTANT(M2, params, SamplingParams()),
                history));
    if (i < num_drafts) {
      OUTRIDER_ASSIGN_OR_RETURN(
          p, JudgingRow(std::move(p), block.history.drafts[i], logits[i],
                        params, history));
    }
    if (block.rule == RuleKind::kCoupled) {
      target.push_back(
          TargetRow::Coupled(std::move(p), block.start + i, random));
      continue;
    }
    target.push_back(TargetRow::FromDense(
        std::move(p),
        i < num_drafts ? block.supports[i] : absl::Span<const TokenId>(),
        block.start + i, random));
  }
  return target;
}

}  // namespace outrider
