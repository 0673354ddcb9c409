// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_SABOTAGE_H_
#define OUTRIDER_TESTS_EXACTNESS_SABOTAGE_H_

#include <functional>
#include <memory>
#include <vector>

#include "core/sampling/distribution.h"
#include "core/sampling/token_history.h"
#include "tests/exactness/toy_cluster.h"

namespace outrider::testing {

// The mutants that are built into the seams around the production path: the
// coins, the rule, the drafts.

// Coins that answer wrongly; each function gets the true source.
class WrongCoins final : public RandomSource {
 public:
  using AcceptFunction =
      std::function<bool(RandomSource&, const CoinKey&, double p, double q)>;
  // Alters the weights before they are drawn from, by purpose.
  using WeightsFunction =
      std::function<void(Purpose, std::vector<double>& weights)>;

  struct Options {
    AcceptFunction accept = {};
    WeightsFunction weights = {};
  };

  WrongCoins(RandomSource& source, Options options)
      : source_(source), options_(std::move(options)) {}

  bool Accept(const CoinKey& key, double p, double q) override;
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override;
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override {
    return source_.Race(position, ids, weights);
  }

 private:
  RandomSource& source_;
  const Options options_;
};

Sabotage WithAccept(WrongCoins::AcceptFunction accept);
Sabotage WithWeights(WrongCoins::WeightsFunction weights);

// A rule over whole rows, p_1..p_{K+1} and q_1..q_K, that draws its last token
// from weights ([vocab_size], any positive sum) of the mutant's choosing.
struct DenseView {
  int vocab_size = 0;
  absl::Span<const TokenId> committed = {};
  const Draft& draft;
  const std::vector<Distribution>& p;
};
struct DenseRule {
  // p of a row of logits; empty: by Process.
  std::function<Distribution(absl::Span<const float>, const TokenHistory&)>
      process = {};
  // q of the acceptance test; empty: as reported. 0 accepts, as p >= q.
  std::function<double(const DenseView&, int i)> draft_probability = {};
  // What follows the refusal of draft i; empty: (p_i - q_i)+.
  std::function<std::vector<double>(const DenseView&, int i)> residual = {};
  // What follows full acceptance; empty: p_{K+1}.
  std::function<std::vector<double>(const DenseView&)> bonus = {};
};
Sabotage WithRule(DenseRule rule, const SamplingParams& sampling);

// [vocab_size] probabilities.
std::vector<double> Dense(const Distribution& p, int vocab_size);
// max(0, p - q); p itself where that is nothing.
std::vector<double> Residual(const Distribution& p, const Distribution& q,
                             int vocab_size);
// p with the support of q left out; p itself where that leaves nothing.
std::vector<double> Off(const Distribution& p, const Distribution& q,
                        int vocab_size);

// A round whose reply is lost with probability 1/2, if `may_be_lost` says so of
// its verdict; it is then drawn again, once, with fresh coins throughout.
Sabotage WithLostReplies(std::function<bool(const Verdict&)> may_be_lost,
                         int k);

// Chooses K by the drafts of its own round: as many as promise the most tokens
// for their time, each as sure as its token's probability.
void KeepWhatPromisesMost(Draft& draft);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_SABOTAGE_H_
