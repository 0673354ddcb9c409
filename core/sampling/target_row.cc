// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/target_row.h"

#include <algorithm>
#include <memory>

#include "core/base/check.h"
#include "core/base/mutant.h"

namespace outrider {
namespace {

// The weights of p with those of the support set to 0.
std::vector<double> WeightsOff(const Distribution& p,
                               absl::Span<const TokenId> support) {
  std::vector<double> weights(p.weights().begin(), p.weights().end());
  auto next = support.begin();
  for (size_t i = 0; i < weights.size(); ++i) {
    while (next != support.end() && *next < p.support()[i]) ++next;
    if (next == support.end()) break;
    if (*next == p.support()[i]) weights[i] = 0;
  }
  return weights;
}

double Sum(absl::Span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

}  // namespace

TargetRow TargetRow::FromDense(Distribution p,
                               absl::Span<const TokenId> support,
                               uint64_t position, RandomSource& random) {
  TargetRow row;
  row.support_.assign(support.begin(), support.end());
  for (const TokenId token : support) row.p_.push_back(p(token));
  row.tail_mass_ = Sum(WeightsOff(p, support)) / p.total();
  row.draw_tail_ = [p = std::move(p), kept = row.support_, position, &random] {
    const std::vector<double> weights =
        WeightsOff(p, OUTRIDER_MUTANT(S1, absl::MakeConstSpan(kept),
                                      absl::Span<const TokenId>()));
    const CoinKey coin = {
        OUTRIDER_MUTANT(S7, Purpose::kTail, Purpose::kResidual), position};
    return p.support()[random.Categorical(coin, weights)];
  };
  return row;
}

double TargetRow::operator()(TokenId token) const {
  const auto it = std::lower_bound(support_.begin(), support_.end(), token);
  OUTRIDER_CHECK(it != support_.end() && *it == token)
      << "token " << token << " is off the draft's support";
  return p_[it - support_.begin()];
}

}  // namespace outrider
