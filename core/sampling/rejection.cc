// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/rejection.h"

#include "core/base/check.h"
#include "core/sampling/residual.h"

namespace outrider {

Verdict RejectionRule::Judge(const Draft& draft,
                             absl::Span<const TargetRow> target,
                             RandomSource& random) const {
  return AcceptPrefix(draft, target, random, lossy_lenience_);
}

Verdict AcceptPrefix(const Draft& draft, absl::Span<const TargetRow> target,
                     RandomSource& random, double lossy_lenience) {
  const int k = draft.length();
  OUTRIDER_CHECK(static_cast<int>(target.size()) == k + 1);
  for (int i = 0; i < k; ++i) {
    const uint64_t position = draft.start + i;  // absolute
    const TokenId x = draft.tokens[i];
    const TargetRow& p = target[i];
    const Distribution& q = draft.distributions[i];
    // p / l against q, not p against l q, which might underflow to 0.
    if (!random.Accept({Purpose::kAccept, position}, p(x) / lossy_lenience,
                       q(x))) {
      return ReplaceRefused(i, p, q, position, random);
    }
  }
  return {k, target[k].drawn_token()};
}

}  // namespace outrider
