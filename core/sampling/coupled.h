// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_COUPLED_H_
#define OUTRIDER_CORE_SAMPLING_COUPLED_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/distribution.h"
#include "core/sampling/random_source.h"

namespace outrider {

// Gumbel-max coupling without communication (Daliri, Musco, Suresh 2024,
// arXiv 2408.07978): drafter and target draw with the same noise for each
// token of a position, and what is committed is always the target's own draw.
// So the output is a function of seed and target alone: whatever the drafter
// and K, it is token for token that of plain decoding under this rule. A draft
// stands with probability between (1 - TV) / (1 + TV) and 1 - TV, where
// `rejection` has 1 - TV.
class CoupledRule final : public AcceptanceRule {
 public:
  // `target` comes from ScoreDraft under RuleKind::kCoupled: its drawn tokens
  // are the target's own. The draft's distributions are not looked at.
  Verdict Judge(const Draft& draft, absl::Span<const TargetRow> target,
                RandomSource& random) const override;
};

// One token of `row`, with the noise that `position` has for each token.
TokenId DrawCoupled(const Distribution& row, uint64_t position,
                    RandomSource& random);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_COUPLED_H_
