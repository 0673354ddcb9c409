// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/cut.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// A bucket has the weights of one exponent that agree in four bits of their
// fraction: as bits of positive doubles are in the order of their values, each
// is above the next. The last has all that are smaller still.
constexpr int kBucketShift = 48;
constexpr int kNumBuckets = 1024;

int64_t BitsOf(double weight) {
  return std::bit_cast<int64_t>(weight) >> kBucketShift;
}

// Positions in the row's support that can be among those kept. What is below
// (1 - mass) / 2 over all tokens weighs less than 1 - mass together, so the
// set that is looked for ends above it; half, so that rounding is no matter.
std::vector<int> Candidates(const Distribution& row, size_t most, double mass) {
  const absl::Span<const double> weights = row.weights();
  double least =
      0.5 * (1 - mass) * row.total() / static_cast<double>(weights.size());
  if (most < weights.size()) least = std::max(least, BoundOfTop(weights, most));
  return PlacesAtLeast(weights, least);
}

// The place that is kept last, in falling order of weight and, among equals,
// rising order of place. Whole buckets are passed by their sums, and one alone
// is sorted.
int FindLast(absl::Span<const double> weights, absl::Span<const int> places,
             size_t most, double mass) {
  double greatest = 0;
  for (const int place : places) greatest = std::max(greatest, weights[place]);
  const int64_t highest = BitsOf(greatest);
  const auto bucket_of = [&](int place) {
    return std::min<int64_t>(highest - BitsOf(weights[place]), kNumBuckets - 1);
  };
  std::array<double, kNumBuckets> sums = {};
  std::array<size_t, kNumBuckets> counts = {};
  for (const int place : places) {
    const int64_t bucket = bucket_of(place);
    sums[bucket] += weights[place];
    ++counts[bucket];
  }
  double sum = 0;
  size_t num_left = std::min(most, places.size());
  int64_t bucket = 0;
  while (sum + sums[bucket] < mass && counts[bucket] < num_left) {
    sum += sums[bucket];
    num_left -= counts[bucket++];
  }
  std::vector<int> edge;
  for (const int place : places) {
    if (bucket_of(place) == bucket) edge.push_back(place);
  }
  std::sort(edge.begin(), edge.end(), [&](int a, int b) {
    return weights[a] > weights[b] || (weights[a] == weights[b] && a < b);
  });
  // Its sum in another order may have been rounded up to the mass.
  num_left = std::min(num_left, edge.size());
  size_t last = 0;
  while (last + 1 < num_left && sum + weights[edge[last]] < mass) {
    sum += weights[edge[last++]];
  }
  return edge[last];
}

}  // namespace

Distribution KeepTop(const Distribution& row, size_t most, double mass) {
  const absl::Span<const double> weights = row.weights();
  const bool has_edge = mass < 1;
  if (weights.size() == 1 || (!has_edge && most >= weights.size())) return row;
  const std::vector<int> places = Candidates(row, most, has_edge ? mass : 1);
  const int last = FindLast(
      weights, places, most,
      has_edge ? mass * row.total() : std::numeric_limits<double>::infinity());
  std::vector<TokenId> ids;
  std::vector<double> kept_weights;
  ids.reserve(places.size());
  kept_weights.reserve(places.size());
  for (const int place : places) {
    if (weights[place] > weights[last] ||
        (weights[place] == weights[last] && place <= last)) {
      ids.push_back(row.support()[place]);
      kept_weights.push_back(weights[place]);
    }
  }
  return Distribution::FromSorted(std::move(ids), std::move(kept_weights));
}

}  // namespace outrider
