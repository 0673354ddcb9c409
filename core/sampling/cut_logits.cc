// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/cut_logits.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/sampling/cut.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// The `count` ids that come first in falling order of value, ties to the
// lowest id, masked ones (-inf) never; in ascending order of id.
template <typename Value>
std::vector<TokenId> TopIds(absl::Span<const Value> values, size_t count) {
  const Value bound = BoundOfTop(values, count);
  std::vector<TokenId> ids;
  ids.reserve(count);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= bound && values[i] != kMasked) {
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

// Min-p is applied after top-k: as each keeps the most probable tokens, the
// order does not matter.
template <typename Value>
Distribution Cut(absl::Span<const Value> logits, const SamplingParams& params) {
  const double maximum = Maximum(logits);
  const size_t top_k = static_cast<size_t>(params.top_k);
  std::vector<TokenId> ids;
  std::vector<double> weights;
  if (top_k > 0 && top_k < logits.size()) {
    ids = TopIds(logits, top_k);
    weights.reserve(ids.size());
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

Distribution CutLogits(absl::Span<const float> logits,
                       const SamplingParams& params) {
  return Cut(logits, params);
}

Distribution CutLogits(absl::Span<const double> logits,
                       const SamplingParams& params) {
  return Cut(logits, params);
}

}  // namespace outrider
