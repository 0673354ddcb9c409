// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/score_draft.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/sampling/lenience.h"
#include "core/sampling/process.h"

namespace outrider {
namespace {

// What the target's row of this number is drawn from.
absl::StatusOr<Distribution> ProcessRow(const RowView& row,
                                        const DraftBlock& block, size_t number,
                                        const SamplingParams& params) {
  if (row.answer != nullptr) {
    const auto& made = std::get<TopAnswer>(*row.answer).row;
    if (made != nullptr) return *made;
    return absl::InternalError("an answered row does not decide");
  }
  TokenHistory history = block.history;
  history.drafts = history.drafts.first(number);
  OUTRIDER_ASSIGN_OR_RETURN(
      Distribution p,
      Process(row.logits, OUTRIDER_MUTANT(M2, params, SamplingParams()),
              history));
  if (number == block.supports.size()) return p;
  return JudgingRow(std::move(p), block.history.drafts[number], row.logits,
                    params, history);
}

absl::StatusOr<TargetRow> RowOf(const DrawAnswer& answer, RuleKind rule,
                                absl::Span<const TokenId> support) {
  if (rule == RuleKind::kCoupled) {
    return TargetRow::FromParts({}, {}, /*tail_mass=*/1, answer.drawn);
  }
  double total = answer.tail;
  for (const double weight : answer.support_weights) total += weight;
  std::vector<double> p;
  for (const double weight : answer.support_weights) {
    p.push_back(weight / total);
  }
  return TargetRow::FromParts({support.begin(), support.end()}, std::move(p),
                              answer.tail / total, answer.drawn);
}

// A row that was drawn from where it is. What is wrong with it is no argument
// of the caller's.
absl::StatusOr<TargetRow> Drawn(const DrawAnswer& answer, RuleKind rule,
                                absl::Span<const TokenId> support) {
  absl::StatusOr<TargetRow> row = RowOf(answer, rule, support);
  if (row.ok()) return row;
  return absl::InternalError(
      absl::StrCat("an answered row is none: ", row.status().message()));
}

}  // namespace

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
    absl::Span<const RowView> rows, const DraftBlock& block,
    const SamplingParams& params, RandomSource& random) {
  const size_t num_drafts = block.supports.size();
  if (rows.size() != num_drafts + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        rows.size(), " target rows do not fit ", num_drafts, " drafts"));
  }
  if (block.history.drafts.size() != num_drafts) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_drafts, " draft rows do not fit ",
                     block.history.drafts.size(), " drafts"));
  }
  std::vector<TargetRow> target;
  target.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const absl::Span<const TokenId> support =
        i < num_drafts ? block.supports[i] : absl::Span<const TokenId>();
    if (rows[i].answer != nullptr &&
        std::holds_alternative<DrawAnswer>(*rows[i].answer)) {
      OUTRIDER_ASSIGN_OR_RETURN(
          TargetRow row,
          Drawn(std::get<DrawAnswer>(*rows[i].answer), block.rule, support));
      target.push_back(std::move(row));
      continue;
    }
    OUTRIDER_ASSIGN_OR_RETURN(Distribution p,
                              ProcessRow(rows[i], block, i, params));
    if (block.rule == RuleKind::kCoupled) {
      target.push_back(
          TargetRow::Coupled(std::move(p), block.start + i, random));
    } else {
      target.push_back(
          TargetRow::FromDense(std::move(p), support, block.start + i, random));
    }
  }
  return target;
}

}  // namespace outrider
