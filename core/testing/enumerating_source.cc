// SPDX-License-Identifier: Apache-2.0
#include "core/testing/enumerating_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace outrider::testing {

EnumeratingSource::EnumeratingSource(std::vector<size_t> past, Reuse reuse)
    : past_length_(past.size()),
      reuse_(reuse),
      path_(std::move(past)),
      num_branches_(path_.size(), 0) {}

bool EnumeratingSource::NextTrace() {
  if (started_) {
    OUTRIDER_CHECK(depth_ == path_.size()) << "the trace ended early";
    while (path_.size() > past_length_ &&
           path_.back() + 1 == num_branches_.back()) {
      path_.pop_back();
      num_branches_.pop_back();
    }
    if (path_.size() == past_length_) return false;
    ++path_.back();
  }
  started_ = true;
  depth_ = 0;
  probability_ = 1;
  coins_.clear();
  return true;
}

bool EnumeratingSource::Accept(const CoinKey& key, double p, double q) {
  OUTRIDER_CHECK(p >= 0 && q > 0) << "p " << p << ", q " << q;
  // The uniform numbers below p / q say yes.
  if (p >= q) return Draw(key, {1.0, 0.0}) == 0;
  return Draw(key, {p / q, (q - p) / q}) == 0;
}

size_t EnumeratingSource::Categorical(const CoinKey& key,
                                      absl::Span<const double> weights) {
  return Draw(key, {weights.begin(), weights.end()});
}

size_t EnumeratingSource::Race(uint64_t position,
                               absl::Span<const TokenId> /*ids*/,
                               absl::Span<const double> weights) {
  return Categorical({Purpose::kGumbel, position}, weights);
}

size_t EnumeratingSource::Draw(const CoinKey& key,
                               std::vector<double> weights) {
  if (const auto it = coins_.find(key); it != coins_.end()) {
    Coin& coin = it->second;
    if (coin.weights == weights) return coin.answer;
    if (reuse_ == Reuse::kRefuse) {
      violation_ =
          absl::StrCat("the coin (purpose ", static_cast<int>(key.purpose),
                       ", position ", key.position, ", generation ",
                       key.generation, ") was asked two different questions");
    }
    return DrawAgain(coin, std::move(weights));
  }
  double total = 0;
  for (const double weight : weights) {
    OUTRIDER_CHECK(weight >= 0) << weight;
    total += weight;
  }
  OUTRIDER_CHECK(total > 0) << "nothing to draw from";
  std::vector<double> probabilities;
  std::vector<size_t> indices;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    probabilities.push_back(weights[i] / total);
    indices.push_back(i);
  }
  Coin coin;
  coin.answer = indices[Fork(probabilities)];
  double below = 0;
  for (size_t i = 0; i < coin.answer; ++i) below += weights[i];
  coin.low = below / total;
  coin.high = (below + weights[coin.answer]) / total;
  coin.weights = std::move(weights);
  return coins_.emplace(key, std::move(coin)).first->second.answer;
}

size_t EnumeratingSource::DrawAgain(Coin& coin, std::vector<double> weights) {
  constexpr double kRounding = 1e-13;
  const bool is_known = coin.high - coin.low < kRounding;
  double total = 0;
  for (const double weight : weights) total += weight;
  std::vector<double> probabilities;
  std::vector<Coin> outcomes;
  double low = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double high = low + weights[i] / total;
    Coin outcome = {.weights = weights,
                    .answer = i,
                    .low = std::max(low, coin.low),
                    .high = std::min(high, coin.high)};
    // The last one also where the sums end below 1.
    const bool is_last = i + 1 == weights.size();
    const bool holds_all = low <= coin.low && (coin.low < high || is_last);
    low = high;
    // Below this it is the rounding of the sums; where the coin itself is known
    // that closely, its place decides.
    if (is_known ? !holds_all : outcome.high - outcome.low < kRounding) {
      continue;
    }
    probabilities.push_back(
        is_known ? 1.0 : (outcome.high - outcome.low) / (coin.high - coin.low));
    outcomes.push_back(std::move(outcome));
  }
  coin = outcomes[Fork(probabilities)];
  return coin.answer;
}

size_t EnumeratingSource::Fork(absl::Span<const double> probabilities) {
  OUTRIDER_CHECK(started_) << "call NextTrace first";
  if (depth_ == path_.size()) {
    path_.push_back(0);
    num_branches_.push_back(probabilities.size());
  }
  const size_t choice = path_[depth_];
  OUTRIDER_CHECK(choice < probabilities.size()) << "not a replay";
  if (depth_ >= past_length_) {
    OUTRIDER_CHECK(num_branches_[depth_] == probabilities.size());
    probability_ *= probabilities[choice];
  }
  ++depth_;
  return choice;
}

}  // namespace outrider::testing
