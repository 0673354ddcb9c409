// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/coupled.h"

#include "core/base/check.h"

namespace outrider {

Verdict CoupledRule::Judge(const Draft& draft,
                           absl::Span<const TargetRow> target,
                           RandomSource& /*random*/) const {
  const int k = draft.length();
  OUTRIDER_CHECK(static_cast<int>(target.size()) == k + 1);
  for (int i = 0; i < k; ++i) {
    const TokenId own = target[i].drawn_token();
    if (own != draft.tokens[i]) return {i, own};
  }
  return {k, target[k].drawn_token()};
}

TokenId DrawCoupled(const Distribution& row, uint64_t position,
                    RandomSource& random) {
  return row.support()[random.Race(position, row.support(), row.weights())];
}

}  // namespace outrider
