// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_ACCEPTANCE_RULE_H_
#define OUTRIDER_CORE_SAMPLING_ACCEPTANCE_RULE_H_

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/sampling/draft.h"
#include "core/sampling/random_source.h"
#include "core/sampling/target_row.h"

namespace outrider {

// How a round ends: the first num_accepted drafts stand, followed by one token
// of the target's own (the replacement after a refusal, the bonus after full
// acceptance). A round commits num_accepted + 1 tokens.
struct Verdict {
  int num_accepted = 0;
  TokenId next_token = 0;
  // Rounding has left no residual although a draft was refused (p = q but for
  // the last bits): next_token is some other token of p. Metrics count it.
  bool lost_residual = false;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// Decides which drafts stand. Pure: chance enters through `random` alone.
class AcceptanceRule {
 public:
  virtual ~AcceptanceRule() = default;
  // `target` has one more row than `draft` has tokens.
  virtual Verdict Judge(const Draft& draft, absl::Span<const TargetRow> target,
                        RandomSource& random) const = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_ACCEPTANCE_RULE_H_
