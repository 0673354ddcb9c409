// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_ENUMERATING_SOURCE_H_
#define OUTRIDER_CORE_TESTING_ENUMERATING_SOURCE_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/sampling/random_source.h"

namespace outrider::testing {

// Walks every branch that chance can take: each draw forks, and the code under
// test is run again (one trace) until all forks have been taken:
//   while (source.NextTrace()) { run; use source.probability(); }
// As with real coins, an equal key repeats its answer within a trace; an equal
// key for another question breaks condition A4 (independent coins).
class EnumeratingSource final : public RandomSource {
 public:
  enum class Reuse {
    kRefuse,        // another question for an old key is a violation
    kShareUniform,  // it sees the same uniform number, as in production
  };

  // Every trace begins with the choices of `past`, which are not varied and do
  // not count in probability().
  explicit EnumeratingSource(std::vector<size_t> past = {},
                             Reuse reuse = Reuse::kRefuse);

  // False when every branch has been taken.
  bool NextTrace();
  // The probability of the choices after the past.
  double probability() const { return probability_; }
  // All choices of the trace; the past of later ones.
  const std::vector<size_t>& path() const { return path_; }
  // What went wrong in any trace so far; empty if nothing did.
  const std::string& violation() const { return violation_; }

  bool Accept(const CoinKey& key, double p, double q) override;
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override;
  // A race is one coin of the position: two parties that race with other
  // weights are a violation. The coupled rule is not enumerated but compared
  // with plain decoding.
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override;

 private:
  struct Coin {
    std::vector<double> weights;  // of its last question
    size_t answer = 0;
    double low = 0;  // what the answers say of the uniform number
    double high = 1;
  };

  size_t Draw(const CoinKey& key, std::vector<double> weights);
  size_t DrawAgain(Coin& coin, std::vector<double> weights);
  // Takes the next branch out of so many; their probabilities sum to 1.
  size_t Fork(absl::Span<const double> probabilities);

  const size_t past_length_;
  const Reuse reuse_;
  std::vector<size_t> path_;
  std::vector<size_t> num_branches_;  // as many as path_
  size_t depth_ = 0;
  bool started_ = false;
  double probability_ = 1;
  std::map<CoinKey, Coin> coins_;
  std::string violation_;
};

// Lends a source to code that wants to own one.
class BorrowedSource final : public RandomSource {
 public:
  explicit BorrowedSource(RandomSource& source) : source_(source) {}
  bool Accept(const CoinKey& key, double p, double q) override {
    return source_.Accept(key, p, q);
  }
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override {
    return source_.Categorical(key, weights);
  }
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override {
    return source_.Race(position, ids, weights);
  }

 private:
  RandomSource& source_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_ENUMERATING_SOURCE_H_
