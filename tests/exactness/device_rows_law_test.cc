// SPDX-License-Identifier: Apache-2.0
// The law of what is accepted where core/kernels/cuda has scored the rows:
// every branch of chance, against the softmax.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/sampling/random_source.h"
#include "core/sampling/rejection.h"
#include "core/sampling/target_row.h"
#include "gtest/gtest.h"
#include "tests/exactness/scored_rows.h"

namespace outrider::testing {
namespace {

constexpr int kBisections = 28;

// The law of the draw off the support, from where in [0, 1) the token changes,
// each border found by bisection. All rows are questions of one pass.
std::vector<double> LawOfDraw(const Question& question) {
  const int size = static_cast<int>(question.logits.size());
  std::vector<double> low(size, 0.0), high(size, 1.0);
  // Border v: coins below it draw a token that is at most v.
  for (int step = 0; step < kBisections; ++step) {
    std::vector<Question> questions(size, question);
    for (int v = 0; v < size; ++v) {
      questions[v].uniform = (low[v] + high[v]) / 2;
    }
    const auto answers = Ask(questions);
    for (int v = 0; v < size; ++v) {
      const bool is_above = answers[v].row.drawn > v;
      (is_above ? high : low)[v] = questions[v].uniform;
    }
  }
  std::vector<double> law;
  for (int v = 0; v < size; ++v) {
    law.push_back(high[v] - (v > 0 ? high[v - 1] : 0.0));
  }
  return law;
}

// Takes each branch that chance has, one a run, in the order of an odometer.
class Forks final : public RandomSource {
 public:
  bool Accept(const CoinKey&, double p, double q) override {
    const double accepted = std::min(1.0, p / q);
    return Take({1 - accepted, accepted}) == 1;
  }
  size_t Categorical(const CoinKey&,
                     absl::Span<const double> weights) override {
    return Take({weights.begin(), weights.end()});
  }
  size_t Race(uint64_t, absl::Span<const TokenId>,
              absl::Span<const double>) override {
    ADD_FAILURE() << "no rule here races";
    return 0;
  }

  // One of the indices of positive weight.
  size_t Take(const std::vector<double>& weights) {
    std::vector<size_t> possible;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > 0) possible.push_back(i);
    }
    if (depth_ == path_.size()) path_.push_back({0, possible.size()});
    const size_t taken = possible.at(path_[depth_++].taken);
    probability_ *=
        weights[taken] / std::accumulate(weights.begin(), weights.end(), 0.0);
    return taken;
  }

  // Prepares the next run; false after the last.
  bool Next() {
    depth_ = 0;
    probability_ = 1;
    while (!path_.empty() && ++path_.back().taken == path_.back().count) {
      path_.pop_back();
    }
    return !path_.empty();
  }
  double probability() const { return probability_; }

 private:
  struct Fork {
    size_t taken;
    size_t count;
  };
  std::vector<Fork> path_;
  size_t depth_ = 0;
  double probability_ = 1;
};

constexpr int kVocabulary = 5;

// Rows of logits as the device scores them, from one support, and the law of
// each one's draw off it.
struct ScoredRows {
  ScoredRows(std::vector<Question> asked, const std::vector<TokenId>& tokens)
      : questions(std::move(asked)), support(tokens) {
    for (Question& question : questions) question.support = support;
    answers = Ask(questions);
    for (const Question& question : questions) {
      tails.push_back(LawOfDraw(question));
      // What bisection leaves between two borders is no branch.
      for (double& p : tails.back()) p = p < 0x1p-26 ? 0 : p;
    }
  }

  TargetRow Row(int i, Forks& forks) const {
    std::optional<TokenId> tail;
    if (answers[i].tail_mass > 0) {
      tail = static_cast<TokenId>(forks.Take(tails[i]));
    }
    return *TargetRow::FromParts(support, answers[i].p, answers[i].tail_mass,
                                 tail);
  }

  std::vector<Question> questions;
  std::vector<TokenId> support;
  std::vector<Answer> answers;
  std::vector<std::vector<double>> tails;
};

// The total variation between the law of the first two tokens, when two drafts
// from q are judged by the production rule over the device's rows, and the
// softmax. Row 1 + v belongs after token v, row 0 after none. A round that
// ends early goes on with the softmax itself.
double DifferenceOfLaw(const std::vector<Question>& rows,
                       const Distribution& q) {
  const std::vector<double> weights(q.weights().begin(), q.weights().end());
  const ScoredRows drafted(rows, {q.support().begin(), q.support().end()});
  const ScoredRows last(rows, {});
  std::vector<Distribution> p;
  for (const Question& row : rows) p.push_back(OnHost(row));
  double law[kVocabulary][kVocabulary] = {};
  Forks forks;
  do {
    Draft draft = {.start = 1, .distributions = {q, q}};
    draft.tokens = {q.support()[forks.Take(weights)],
                    q.support()[forks.Take(weights)]};
    std::vector<TargetRow> target;
    target.push_back(drafted.Row(0, forks));
    target.push_back(drafted.Row(1 + draft.tokens[0], forks));
    target.push_back(last.Row(1 + draft.tokens[1], forks));
    const Verdict verdict = AcceptPrefix(draft, target, forks);
    if (verdict.num_accepted > 0) {
      const TokenId second =
          verdict.num_accepted > 1 ? draft.tokens[1] : verdict.next_token;
      law[draft.tokens[0]][second] += forks.probability();
      continue;
    }
    for (int v = 0; v < kVocabulary; ++v) {
      law[verdict.next_token][v] +=
          forks.probability() * p[1 + verdict.next_token](v);
    }
  } while (forks.Next());
  double difference = 0;
  for (int a = 0; a < kVocabulary; ++a) {
    for (int b = 0; b < kVocabulary; ++b) {
      difference += std::abs(law[a][b] - p[0](a) * p[1 + a](b));
    }
  }
  return difference / 2;
}

// The order of threads is another test's matter.
TEST(DeviceRowsLawTest, WhatIsAcceptedHasTheLawOfTheLogits) {
  const Distribution q = Distribution::FromSorted({1, 2, 4}, {0.5, 0.2, 0.3});
  for (const double temperature : {0.0, 0.7, 1.0}) {
    std::vector<Question> rows;
    for (uint32_t i = 0; i <= kVocabulary; ++i) {
      rows.push_back({.logits = Logits(kVocabulary, 20 + i, 3.0f),
                      .temperature = temperature});
      if (temperature == 0.7) {
        rows.back().moves = {.frequency_penalty = 0.8,
                             .tokens = {{.token = 1, .num_generated = 2},
                                        {.token = 3, .bias = 1.5}}};
      }
    }
    // Two positions, each within the bound.
    EXPECT_LE(DifferenceOfLaw(rows, q), 2 * kTotalVariation) << temperature;
  }
}

}  // namespace
}  // namespace outrider::testing
