// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/residual.h"

#include <algorithm>

#include "core/base/mutant.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// Where rounding left no residual although a draft was refused (p = q): the
// last token with p > q, or if there is none the last with p > 0.
TokenId LastPossible(const TargetRow& p, const Distribution& q) {
  TokenId last = q.support().back();
  bool found_greater = false;
  for (const TokenId v : q.support()) {
    if (p(v) > q(v)) {
      last = v;
      found_greater = true;
    } else if (!found_greater && p(v) > 0) {
      last = v;
    }
  }
  return last;
}

}  // namespace

std::vector<double> ResidualWeights(const TargetRow& p, const Distribution& q,
                                    double share) {
  std::vector<double> weights;
  weights.reserve(q.support().size() + 1);
  for (const TokenId v : q.support()) {
    weights.push_back(
        OUTRIDER_MUTANT(M3, std::max(0.0, share * p(v) - q(v)), p(v)));
  }
  weights.push_back(share * p.tail_mass());
  return weights;
}

Verdict ReplaceRefused(int num_accepted, const TargetRow& p,
                       const Distribution& q, uint64_t position,
                       RandomSource& random, double share) {
  const std::vector<double> weights = ResidualWeights(p, q, share);
  if (Sum(weights) <= 0.0) {
    return {num_accepted, LastPossible(p, q), /*lost_residual=*/true};
  }
  const size_t i = random.Categorical({Purpose::kResidual, position}, weights);
  // The residual off the support of q is p itself: of that the row brings one
  // token.
  return {num_accepted,
          i < q.support().size() ? q.support()[i] : p.drawn_token()};
}

}  // namespace outrider
