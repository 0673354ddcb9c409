// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_REJECTION_H_
#define OUTRIDER_CORE_SAMPLING_REJECTION_H_

#include "absl/types/span.h"
#include "core/sampling/acceptance_rule.h"

namespace outrider {

// Speculative sampling: the committed tokens have exactly the target's joint
// law, whatever the drafter (Leviathan et al. 2023, Algorithm 1; Chen et al.
// 2023, Algorithm 2). With one-hot target rows (temperature 0) it is greedy
// verification: a draft stands iff it is the target's argmax.
class RejectionRule final : public AcceptanceRule {
 public:
  // `lossy_lenience`: see AcceptPrefix.
  explicit RejectionRule(double lossy_lenience = 1)
      : lossy_lenience_(lossy_lenience) {}

  Verdict Judge(const Draft& draft, absl::Span<const TargetRow> target,
                RandomSource& random) const override;

 private:
  const double lossy_lenience_;
};

// Algorithm 1 of Leviathan et al. (2023), from the acceptance test on.
// `target` has one more row than `draft` has tokens. Below 1 `lossy_lenience`,
// l in (0, 1], accepts with probability min(1, p / (l q)) in place of
// min(1, p / q) (lenience.h); 1 changes no bit.
Verdict AcceptPrefix(const Draft& draft, absl::Span<const TargetRow> target,
                     RandomSource& random, double lossy_lenience = 1);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_REJECTION_H_
