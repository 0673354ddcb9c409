// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/block_verification.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutant.h"
#include "core/sampling/residual.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// p_0, p_1, ... of the paper: the probability with which the first n drafts
// stand, over all that may come after them.
std::vector<double> Shares(const Draft& draft,
                           absl::Span<const TargetRow> target) {
  std::vector<double> shares = {1};
  for (int i = 0; i < draft.length(); ++i) {
    const TokenId x = draft.tokens[i];
    // Not share * (p / q): the quotient may be infinite where the share is 0.
    const double share = shares[i] * target[i](x) / draft.distributions[i](x);
    shares.push_back(std::min(share, 1.0));
  }
  return shares;
}

// Whether the first n > 0 drafts are accepted, by a coin of their own. It is
// this round's alone: it may lie after the commit point, and the next round
// judges the same positions again.
bool Stands(int n, const Draft& draft, absl::Span<const TargetRow> target,
            absl::Span<const double> shares, RandomSource& random) {
  double accepted = shares[n];  // h_n of the paper is accepted / offered
  double offered = 1;
  if (OUTRIDER_MUTANT(B2, n < draft.length(), false)) {
    accepted = Sum(ResidualWeights(target[n], draft.distributions[n],
                                   OUTRIDER_MUTANT(B3, shares[n], 1.0)));
    offered = accepted + (1 - shares[n]);
  }
  // Certain so far, and nothing left for what replaces the next draft: that one
  // stood as well, but for rounding.
  if (offered == 0) return true;
  return random.Accept({Purpose::kAccept, draft.start + n - 1, draft.start},
                       accepted, offered);
}

}  // namespace

Verdict BlockRule::Judge(const Draft& draft, absl::Span<const TargetRow> target,
                         RandomSource& random) const {
  const int k = draft.length();
  OUTRIDER_CHECK(static_cast<int>(target.size()) == k + 1);
  const std::vector<double> shares = Shares(draft, target);
  int n = k;  // the longest prefix that is accepted; none always is
  while (n > 0 && !Stands(n, draft, target, shares, random)) --n;
  if (n == k) return {k, target[k].drawn_token()};
  return ReplaceRefused(n, target[n], draft.distributions[n], draft.start + n,
                        random, OUTRIDER_MUTANT(B1, shares[n], 1.0));
}

}  // namespace outrider
