// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/cut.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The `count` ids that come first in falling order of value, ties to the
// lowest id, masked ones (-inf) never; in ascending order of id.
template <typename Value>
std::vector<TokenId> TopIds(absl::Span<const Value> values, size_t count) {
  const Value bound = BoundOfTop(values, count);
  std::vector<TokenId> ids;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= bound && values[i] != -kInfinity) {
      ids.push_back(static_cast<TokenId>(i));
    }
  }
  if (ids.size() <= count) return ids;
  const auto before = [&](TokenId a, TokenId b) {
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  };
  const auto edge = ids.begin() + static_cast<ptrdiff_t>(count);
  std::nth_element(ids.begin(), edge, ids.end(), before);
  ids.erase(edge, ids.end());
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Drops the tokens below `least`.
Distribution KeepAtLeast(std::vector<TokenId> ids, std::vector<double> weights,
                         double least) {
  if (CountAtLeast(weights, least) < weights.size()) {
    size_t kept = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double weight = weights[i];
      ids[kept] = ids[i];
      weights[kept] = weight;
      kept += weight >= least ? 1 : 0;
    }
    ids.resize(kept);
    weights.resize(kept);
  }
  return Distribution::FromSorted(std::move(ids), std::move(weights));
}

// The part of processing from the temperature on. Min-p is applied after top-k:
// as each keeps the most probable tokens, the order does not matter.
template <typename Value>
Distribution CutAndNormalise(absl::Span<const Value> logits,
                             const SamplingParams& params) {
  const double maximum = Maximum(logits);
  const size_t top_k = static_cast<size_t>(params.top_k);
  std::vector<TokenId> ids;
  std::vector<double> weights;
  if (top_k > 0 && top_k < logits.size()) {
    ids = TopIds(logits, top_k);
    for (const TokenId id : ids) weights.push_back(logits[id]);
    SoftmaxWeights(absl::MakeConstSpan(weights), maximum, params.temperature,
                   absl::MakeSpan(weights));
  } else {
    ids.resize(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    weights.resize(logits.size());
    SoftmaxWeights(logits, maximum, params.temperature,
                   absl::MakeSpan(weights));
  }
  // The most probable token's weight is 1. None is subnormal, and a masked
  // token's is 0: neither is listed.
  const double least =
      std::max(params.min_p, std::numeric_limits<double>::min());
  Distribution row = KeepAtLeast(std::move(ids), std::move(weights), least);
  if (params.top_p == 1) return row;
  return KeepTop(row, row.support().size(), params.top_p);
}

}  // namespace

absl::StatusOr<Distribution> Process(absl::Span<const float> logits,
                                     const SamplingParams& params,
                                     const TokenHistory& history) {
  OUTRIDER_RETURN_IF_ERROR(CheckLogits(logits));
  if (!AdjustsLogits(params)) {
    return IsGreedy(params) ? Distribution::OneHot(Argmax(logits))
                            : CutAndNormalise(logits, params);
  }
  OUTRIDER_ASSIGN_OR_RETURN(const std::vector<double> adjusted,
                            AdjustLogits(logits, params, history));
  if (IsGreedy(params)) {
    const auto best = std::max_element(adjusted.begin(), adjusted.end());
    return Distribution::OneHot(static_cast<TokenId>(best - adjusted.begin()));
  }
  return CutAndNormalise(absl::MakeConstSpan(adjusted), params);
}

absl::Status CheckLogits(absl::Span<const float> logits) {
  const RowCheck row = CheckRow(logits);
  if (!row.all_valid) {
    const auto bad = std::find_if(logits.begin(), logits.end(), [](float x) {
      return std::isnan(x) || x == kInfinity;
    });
    return absl::InternalError(absl::StrCat(
        "the model gave logit ", *bad, " for token ", bad - logits.begin()));
  }
  if (!row.any_possible) {
    return absl::InternalError("the model masked every token of a row");
  }
  return absl::OkStatus();
}

ArgmaxAndGap FindArgmax(absl::Span<const float> logits) {
  ArgmaxAndGap best;
  float second = -kInfinity;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best.argmax]) {
      second = logits[best.argmax];
      best.argmax = static_cast<int>(i);
    } else {
      second = std::max(second, logits[i]);
    }
  }
  best.gap = logits[best.argmax] - second;
  return best;
}

}  // namespace outrider
