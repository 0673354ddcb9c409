// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/rejection.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
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
      return {i, DrawResidual(p, q, position, random)};
    }
  }
  return {k, target[k].tail_token()};
}

TokenId DrawResidual(const TargetRow& p, const Distribution& q,
                     uint64_t position, RandomSource& random) {
  // On the support of q the residual is max(0, p - q). Off it q is 0, so the
  // residual is p itself, from which the row brings one token.
  std::vector<double> weights;
  weights.reserve(q.support().size() + 1);
  for (const TokenId v : q.support()) {
    weights.push_back(OUTRIDER_MUTANT(M3, std::max(0.0, p(v) - q(v)), p(v)));
  }
  weights.push_back(p.tail_mass());
  if (Sum(weights) <= 0.0) return LastPossible(p, q);
  const size_t i = random.Categorical({Purpose::kResidual, position}, weights);
  return i < q.support().size() ? q.support()[i] : p.tail_token();
}

}  // namespace outrider
