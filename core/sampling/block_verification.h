// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_BLOCK_VERIFICATION_H_
#define OUTRIDER_CORE_SAMPLING_BLOCK_VERIFICATION_H_

#include "absl/types/span.h"
#include "core/sampling/acceptance_rule.h"

namespace outrider {

// Block verification (Sun et al., ICLR 2025, arXiv 2403.10444, Algorithm 2):
// the drafts of a round are judged together, not one by one. The committed
// tokens have exactly the target's joint law, as under RejectionRule, and no
// fewer drafts stand on average; with one draft, or at temperature 0, the two
// are the same. A draft that p likes better than q does makes up for the one
// before it.
class BlockRule final : public AcceptanceRule {
 public:
  Verdict Judge(const Draft& draft, absl::Span<const TargetRow> target,
                RandomSource& random) const override;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_BLOCK_VERIFICATION_H_
