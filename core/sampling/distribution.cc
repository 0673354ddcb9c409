// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/distribution.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/bfloat16.h"
#include "core/sampling/vector_math.h"

namespace outrider {

Distribution::Distribution(std::vector<TokenId> ids,
                           std::vector<double> weights)
    : ids_(std::move(ids)),
      weights_(std::move(weights)),
      total_(Sum(weights_)) {}

absl::StatusOr<Distribution> Distribution::Create(std::vector<TokenId> ids,
                                                  std::vector<double> weights,
                                                  int vocab_size) {
  if (ids.empty() || ids.size() != weights.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a row needs at least one id and a weight for each: ", ids.size(),
        " ids, ", weights.size(), " weights"));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token id ", AsSent(ids[i]), " is outside [0, ", vocab_size, ")"));
    }
    if (i > 0 && ids[i] <= ids[i - 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("ids must ascend: ", ids[i - 1], " then ", ids[i]));
    }
    if (!(weights[i] > 0) || !std::isfinite(weights[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("the weight of token ", ids[i],
                       " must be positive and finite, not ", weights[i]));
    }
  }
  Distribution row(std::move(ids), std::move(weights));
  if (!std::isfinite(row.total_)) {
    return absl::InvalidArgumentError("the weights of a row overflow");
  }
  return row;
}

Distribution Distribution::Normalized() const {
  if (is_certain()) return *this;
  std::vector<double> weights;
  weights.reserve(weights_.size());
  for (const double weight : weights_) weights.push_back(weight / total_);
  return FromSorted(ids_, std::move(weights));
}

Distribution Distribution::RoundedToBFloat16() && {
  if (is_certain()) return *this;
  size_t num_kept = 0;
  for (size_t i = 0; i < ids_.size(); ++i) {
    const float probability = static_cast<float>(weights_[i] / total_);
    const double rounded = ToFloat(ToBFloat16(probability));
    if (rounded <= 0) continue;
    ids_[num_kept] = ids_[i];
    weights_[num_kept++] = rounded;
  }
  ids_.resize(num_kept);
  weights_.resize(num_kept);
  return FromSorted(std::move(ids_), std::move(weights_));
}

double Distribution::operator()(TokenId token) const {
  const std::optional<size_t> place = Find(token);
  return place.has_value() ? weights()[*place] / total_ : 0.0;
}

std::optional<size_t> Distribution::Find(TokenId token) const {
  const absl::Span<const TokenId> ids = support();
  // A dense row has id i at place i: worth a look before the search.
  const size_t guess = static_cast<size_t>(token);
  if (guess < ids.size() && ids[guess] == token) return guess;
  const auto it = std::lower_bound(ids.begin(), ids.end(), token);
  if (it == ids.end() || *it != token) return std::nullopt;
  return it - ids.begin();
}

}  // namespace outrider
