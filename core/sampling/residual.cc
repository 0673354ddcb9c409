// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/residual.h"

#include <algorithm>
#include <atomic>

#include "core/base/mutant.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

std::atomic<uint64_t> num_residuals_lost = 0;

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

TokenId DrawResidual(const TargetRow& p, const Distribution& q,
                     uint64_t position, RandomSource& random, double share) {
  const std::vector<double> weights = ResidualWeights(p, q, share);
  if (Sum(weights) <= 0.0) {
    num_residuals_lost.fetch_add(1, std::memory_order_relaxed);
    return LastPossible(p, q);
  }
  const size_t i = random.Categorical({Purpose::kResidual, position}, weights);
  // Off the support of q the residual is p itself, from which the row brings
  // one token.
  return i < q.support().size() ? q.support()[i] : p.drawn_token();
}

uint64_t NumResidualsLost() {
  return num_residuals_lost.load(std::memory_order_relaxed);
}

}  // namespace outrider
