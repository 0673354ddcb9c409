// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/target_row.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/mutant.h"
#include "core/sampling/coupled.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// A sum of a vocabulary's doubles is closer to 1 by far.
constexpr double kSumTolerance = 1e-6;

// The weights of p with those of the support set to 0.
std::vector<double> WeightsOff(const Distribution& p,
                               absl::Span<const TokenId> support) {
  std::vector<double> weights(p.weights().begin(), p.weights().end());
  for (const TokenId token : support) {
    if (const auto place = p.Find(token)) weights[*place] = 0;
  }
  return weights;
}

}  // namespace

TargetRow TargetRow::FromDense(Distribution p,
                               absl::Span<const TokenId> support,
                               uint64_t position, RandomSource& random) {
  TargetRow row;
  row.support_.assign(support.begin(), support.end());
  row.p_.reserve(support.size());
  for (const TokenId token : support) row.p_.push_back(p(token));
  if (p.support().size() == 1) {
    // One that is certain is drawn without a coin.
    const TokenId token = p.support()[0];
    row.tail_mass_ = absl::c_linear_search(support, token) ? 0 : 1;
    row.draw_ = [token] { return token; };
    return row;
  }
  std::vector<double> off = WeightsOff(p, support);
  row.tail_mass_ = Sum(off) / p.total();
  row.draw_ = [p = std::move(p), off = std::move(off), position, &random] {
    const CoinKey coin = {
        OUTRIDER_MUTANT(S7, Purpose::kTail, Purpose::kResidual), position};
    const size_t place = random.Categorical(
        coin, OUTRIDER_MUTANT(S1, absl::MakeConstSpan(off), p.weights()));
    return p.support()[place];
  };
  return row;
}

TargetRow TargetRow::Coupled(Distribution p, uint64_t position,
                             RandomSource& random) {
  TargetRow row;
  row.tail_mass_ = 1;
  row.draw_ = [p = std::move(p), position, &random] {
    return DrawCoupled(p, position, random);
  };
  return row;
}

absl::StatusOr<TargetRow> TargetRow::FromParts(
    std::vector<TokenId> support, std::vector<double> p, double tail_mass,
    std::optional<TokenId> tail_token) {
  if (p.size() != support.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a target row has ", p.size(), " probabilities for ",
                     support.size(), " tokens"));
  }
  double sum = tail_mass;
  bool in_range = tail_mass >= 0;  // written so that NaN fails
  for (const double probability : p) {
    in_range = in_range && probability >= 0;
    sum += probability;
  }
  if (!in_range || !(std::abs(sum - 1) <= kSumTolerance)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a target row's probabilities and tail must be positive and sum to 1, "
        "not ",
        sum));
  }
  if (tail_token.has_value() != (tail_mass > 0)) {
    return absl::InvalidArgumentError(
        "a target row has a tail token if and only if its tail has mass");
  }
  if (tail_token.has_value() &&
      std::binary_search(support.begin(), support.end(), *tail_token)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tail token ", *tail_token, " is on the draft's support"));
  }
  TargetRow row;
  row.support_ = std::move(support);
  row.p_ = std::move(p);
  row.tail_mass_ = tail_mass;
  if (tail_token.has_value()) {
    row.draw_ = [token = *tail_token] { return token; };
  }
  return row;
}

void TargetRow::Draw() {
  if (tail_mass_ <= 0) {
    draw_ = nullptr;
    return;
  }
  draw_ = [token = draw_()] { return token; };
}

double TargetRow::operator()(TokenId token) const {
  const auto it = std::lower_bound(support_.begin(), support_.end(), token);
  OUTRIDER_CHECK(it != support_.end() && *it == token)
      << "token " << token << " is off the draft's support";
  return p_[it - support_.begin()];
}

}  // namespace outrider
