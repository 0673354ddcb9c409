// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/process.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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

absl::Status CheckFinite(absl::Span<const float> logits) {
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

// The `count` ids that come first in falling order of value, ties to the
// lowest id; returned in ascending order of id.
template <typename Value>
std::vector<TokenId> TopIds(absl::Span<const Value> values,
                            std::vector<TokenId> ids, size_t count) {
  const auto before = [&](TokenId a, TokenId b) {
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  };
  std::nth_element(ids.begin(), ids.begin() + (count - 1), ids.end(), before);
  ids.resize(count);
  std::sort(ids.begin(), ids.end());
  return ids;
}

template <typename Value>
std::vector<TokenId> Unmasked(absl::Span<const Value> logits) {
  std::vector<TokenId> ids;
  ids.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != -kInfinity) ids.push_back(static_cast<TokenId>(i));
  }
  return ids;
}

// Softmax over `ids`, the most probable token among them; what is below min_p
// times that one, or underflows to 0, leaves the support.
template <typename Value>
Distribution Softmax(absl::Span<const Value> logits, std::vector<TokenId> ids,
                     const SamplingParams& params) {
  Value maximum = -std::numeric_limits<Value>::infinity();
  for (const TokenId id : ids) maximum = std::max(maximum, logits[id]);
  std::vector<double> weights(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    weights[i] =
        (static_cast<double>(logits[ids[i]]) - maximum) / params.temperature;
  }
  ExpInPlace(absl::MakeSpan(weights));
  // The most probable token's weight is 1; none is positive and subnormal.
  const double least =
      std::max(params.min_p, std::numeric_limits<double>::min());
  size_t kept = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (weights[i] < least) continue;
    ids[kept] = ids[i];
    weights[kept++] = weights[i];
  }
  ids.resize(kept);
  weights.resize(kept);
  return Distribution::FromSorted(std::move(ids), std::move(weights));
}

// From the temperature on. Min-p is applied behind top-k: each keeps the most
// probable tokens, so that together they keep the same ones in either order.
template <typename Value>
Distribution CutAndNormalise(absl::Span<const Value> logits,
                             const SamplingParams& params) {
  std::vector<TokenId> ids = Unmasked(logits);
  const size_t top_k = static_cast<size_t>(params.top_k);
  if (top_k > 0 && top_k < ids.size()) {
    ids = TopIds(logits, std::move(ids), top_k);
  }
  Distribution row = Softmax(logits, std::move(ids), params);
  if (params.top_p == 1) return row;
  const size_t size = row.support().size();
  return KeepTop(row, size, params.top_p);
}

}  // namespace

absl::StatusOr<Distribution> Process(absl::Span<const float> logits,
                                     const SamplingParams& params,
                                     const TokenHistory& history) {
  OUTRIDER_RETURN_IF_ERROR(CheckFinite(logits));
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
