// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_SCORE_DRAFT_H_
#define OUTRIDER_CORE_SAMPLING_SCORE_DRAFT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/sampling/draft.h"
#include "core/sampling/random_source.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/target_row.h"
#include "core/sampling/token_history.h"
#include "core/sampling/token_logprobs.h"

namespace outrider {

// A block of drafts as far as its target rows depend on it.
struct DraftBlock {
  uint64_t start = 0;  // absolute position of the first draft
  RuleKind rule = RuleKind::kRejection;
  // The support of each draft's row, ascending.
  std::vector<absl::Span<const TokenId>> supports = {};
  // What stands before the block, and all of its drafts: each row sees those
  // before it.
  TokenHistory history = {};
  // What is scored of each row's support, and of the token drawn there.
  std::optional<LogprobsOptions> logprobs = {};

  // `draft` and what `before` looks at must outlive the result.
  static DraftBlock Of(const Draft& draft, const TokenHistory& before,
                       RuleKind rule = RuleKind::kRejection);
};

// The target's rows for a block, processed like every row of the session. They
// are made from raw logits, or from the answers to what AskRows asks of these
// for the same block and parameters. A row is seen from the support of the
// draft that it judges. The last row comes after all drafts and has no support;
// under kCoupled no row has one, as only the target's own draw counts. A lossy
// lenience at temperature 0 puts the mass of a row on its draft, where that
// stands (lenience.h). One function for every reply format, on whichever side
// the logits are. `random` must outlive the rows. INVALID_ARGUMENT where rows,
// supports and drafts do not fit; INTERNAL where a row is no row of logits (see
// Process), or an answer no answer.
absl::StatusOr<std::vector<TargetRow>> ScoreDraft(
    absl::Span<const RowView> rows, const DraftBlock& block,
    const SamplingParams& params, RandomSource& random);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_SCORE_DRAFT_H_
