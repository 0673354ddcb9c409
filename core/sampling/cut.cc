// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/cut.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// Positions in the row's support that can be among those kept. What is below
// (1 - mass) / 2 over all tokens weighs less than 1 - mass together, so the
// set that is looked for ends above it; half, so that rounding is no matter.
std::vector<int> Candidates(const Distribution& row, size_t most, double mass) {
  const absl::Span<const double> weights = row.weights();
  double least =
      0.5 * (1 - mass) * row.total() / static_cast<double>(weights.size());
  if (most < weights.size()) least = std::max(least, BoundOfTop(weights, most));
  std::vector<int> places;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= least) places.push_back(static_cast<int>(i));
  }
  return places;
}

}  // namespace

Distribution KeepTop(const Distribution& row, size_t most, double mass) {
  const absl::Span<const double> weights = row.weights();
  const bool has_edge = mass < 1;
  if (!has_edge && most >= weights.size()) return row;
  const auto before = [&](int a, int b) {
    return weights[a] > weights[b] || (weights[a] == weights[b] && a < b);
  };
  std::vector<int> places = Candidates(row, most, has_edge ? mass : 1);
  const size_t limit = std::min(most, places.size());

  // Sorted as far as needed: 64 of them, then four times as many, ...
  double sum = 0;
  size_t kept = 0;
  size_t sorted = 0;
  while (kept < limit && (!has_edge || sum < mass * row.total())) {
    if (kept == sorted) {
      const auto begin = places.begin() + static_cast<ptrdiff_t>(sorted);
      sorted = std::min(std::max<size_t>(64, 4 * sorted), places.size());
      const auto end = places.begin() + static_cast<ptrdiff_t>(sorted);
      if (end != places.end()) {
        std::nth_element(begin, end, places.end(), before);
      }
      std::sort(begin, end, before);
    }
    sum += weights[places[kept++]];
  }
  places.resize(kept);
  std::sort(places.begin(), places.end());
  std::vector<TokenId> ids;
  std::vector<double> kept_weights;
  for (const int place : places) {
    ids.push_back(row.support()[place]);
    kept_weights.push_back(weights[place]);
  }
  return Distribution::FromSorted(std::move(ids), std::move(kept_weights));
}

}  // namespace outrider
