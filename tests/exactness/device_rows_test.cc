// SPDX-License-Identifier: Apache-2.0
// Rows of logits as core/kernels/cuda scores them, against the production
// sampler: probabilities, draws, and the law of what is accepted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/cuda_model/device_question.h"
#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/score_rows.h"
#include "core/kernels/random_values.h"
#include "core/sampling/coins.h"
#include "core/sampling/coupled.h"
#include "core/sampling/process.h"
#include "core/sampling/rejection.h"
#include "core/sampling/target_row.h"
#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

using kernels::RandomValues;
using kernels::cuda::DeviceArray;
using kernels::cuda::DrawRow;
using kernels::cuda::DrawRowResult;

// docs/algorithm.md: what float32 weights may change of a law.
constexpr double kTotalVariation = 1e-6;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A question as a test asks it.
struct Question {
  std::vector<float> logits = {};
  double temperature = 1.0;
  std::vector<TokenId> support = {};
  double uniform = 0;
  bool is_coupled = false;
  uint64_t seed = 0;
  uint64_t position = 0;
};

struct Answer {
  DrawRowResult row = {};
  std::vector<double> p = {};  // over the support
  double tail_mass = 0;
};

// All questions in one pass; their rows are equally long.
std::vector<Answer> Ask(const std::vector<Question>& questions) {
  const size_t vocab_size = questions[0].logits.size();
  std::vector<float> logits;
  std::vector<int> support;
  for (const Question& question : questions) {
    logits.insert(logits.end(), question.logits.begin(), question.logits.end());
    support.insert(support.end(), question.support.begin(),
                   question.support.end());
  }
  const DeviceArray<float> device_logits(logits);
  std::vector<DrawRow> rows;
  int first_support = 0;
  for (const Question& question : questions) {
    const int num_support = static_cast<int>(question.support.size());
    rows.push_back({.logits = device_logits.data() + rows.size() * vocab_size,
                    .vocab_size = static_cast<int>(vocab_size),
                    .scale = ScaleOf(question.temperature),
                    .first_support = first_support,
                    .num_support = num_support,
                    .uniform = question.uniform,
                    .is_coupled = question.is_coupled,
                    .seed = question.seed,
                    .position = question.position});
    first_support += num_support;
  }
  const int num_rows = static_cast<int>(rows.size());
  const int num_tokens = static_cast<int>(vocab_size);
  const DeviceArray<DrawRow> device_rows(rows);
  const DeviceArray<int> device_support(support);
  const DeviceArray<float> device_weights(support.size());
  const DeviceArray<DrawRowResult> device_answers(rows.size());
  const DeviceArray<unsigned char> scratch(
      kernels::cuda::ScoreRowsScratchBytes(num_rows, num_tokens));
  kernels::cuda::ScoreRows({.rows = device_rows.data(),
                            .num_rows = num_rows,
                            .vocab_size = num_tokens,
                            .support = device_support.data(),
                            .scratch = scratch.data(),
                            .support_weights = device_weights.data(),
                            .answers = device_answers.data()},
                           nullptr);
  const std::vector<DrawRowResult> read = device_answers.Read();
  const std::vector<float> weights = device_weights.Read();
  std::vector<Answer> answers;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto begin = weights.begin() + rows[i].first_support;
    const auto end = begin + rows[i].num_support;
    const double total = std::accumulate(begin, end, read[i].tail);
    Answer answer = {.row = read[i], .tail_mass = read[i].tail / total};
    for (auto weight = begin; weight != end; ++weight) {
      answer.p.push_back(*weight / total);
    }
    answers.push_back(answer);
  }
  return answers;
}

Distribution OnHost(const Question& question) {
  return *Process(question.logits, {.temperature = question.temperature}, {});
}

// Logits of a row, more uneven where the spread is wide.
std::vector<float> Logits(int vocab_size, uint32_t seed, float spread) {
  std::vector<float> logits = RandomValues(vocab_size, seed);
  for (float& x : logits) x *= spread;
  return logits;
}

// Every step-th token, and the first and the last.
std::vector<TokenId> EveryNth(int vocab_size, int step) {
  std::vector<TokenId> support;
  for (int id = 0; id < vocab_size; id += step) support.push_back(id);
  if (support.back() != vocab_size - 1) support.push_back(vocab_size - 1);
  return support;
}

class DeviceRowsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  DeviceRowsTest() { kernels::cuda::emulation::SetSeed(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Orders, DeviceRowsTest,
                         ::testing::Values(uint64_t{1}, uint64_t{2},
                                           uint64_t{3}));

// Sizes around those of a thread's run, a warp's, and a chunk.
TEST_P(DeviceRowsTest, ProbabilitiesAreThoseOfTheHost) {
  for (const int size : {1, 2, 15, 17, 513, 4095, 4096, 4097, 9000}) {
    for (const double temperature : {0.0, 0.3, 1.0, 2.5}) {
      const Question question = {.logits = Logits(size, size, 12.0f),
                                 .temperature = temperature,
                                 .support = EveryNth(size, 7)};
      const Answer answer = Ask({question})[0];
      const Distribution p = OnHost(question);
      ASSERT_TRUE(answer.row.is_valid);
      EXPECT_EQ(answer.row.argmax, FindArgmax(question.logits).argmax);
      double on_support = 0, difference = 0;
      for (size_t i = 0; i < question.support.size(); ++i) {
        on_support += p(question.support[i]);
        difference += std::abs(answer.p[i] - p(question.support[i]));
      }
      EXPECT_LE(difference / 2, kTotalVariation) << size << ", " << temperature;
      EXPECT_NEAR(answer.tail_mass, 1 - on_support, kTotalVariation);
    }
  }
}

// The tokens before the drawn one hold less than the coin, with it more.
TEST_P(DeviceRowsTest, ACoinDrawsTheTokenWhoseShareItFallsInto) {
  for (const int size : {2, 40, 4097, 9000}) {
    std::vector<Question> questions;
    for (const float uniform : RandomValues(60, 5)) {
      questions.push_back({.logits = Logits(size, 11, 6.0f),
                           .support = EveryNth(size, size == 2 ? 2 : 3),
                           .uniform = (uniform + 1.0) / 2.0});
      if (size == 2) questions.back().support = {0};
    }
    const auto answers = Ask(questions);
    const Distribution p = OnHost(questions[0]);
    std::vector<double> below = {0};  // below[v]: off the support, before v
    for (int v = 0; v < size; ++v) {
      const bool is_on = std::binary_search(questions[0].support.begin(),
                                            questions[0].support.end(), v);
      below.push_back(below.back() + (is_on ? 0.0 : p(v)));
    }
    for (size_t i = 0; i < questions.size(); ++i) {
      const int drawn = answers[i].row.drawn;
      ASSERT_GE(drawn, 0);
      ASSERT_LT(drawn, size);
      const double coin = questions[i].uniform * below.back();
      EXPECT_LT(below[drawn], below[drawn + 1]) << "on the support";
      EXPECT_LE(below[drawn], coin + kTotalVariation);
      EXPECT_GE(below[drawn + 1], coin - kTotalVariation);
    }
  }
}

TEST_P(DeviceRowsTest, AFullSupportLeavesNothingToDraw) {
  std::vector<TokenId> all(20);
  std::iota(all.begin(), all.end(), 0);
  const Answer answer =
      Ask({{.logits = Logits(20, 3, 2.0f), .support = all, .uniform = 0.5}})[0];
  EXPECT_EQ(answer.row.tail, 0);
  EXPECT_EQ(answer.row.drawn, -1);
}

TEST_P(DeviceRowsTest, TheLastPossibleTokenTakesACoinAtTheEnd) {
  std::vector<float> logits = Logits(5000, 3, 2.0f);
  std::fill(logits.begin() + 4200, logits.end(), -kInfinity);
  const Question question = {.logits = logits,
                             .support = {4199},
                             .uniform = 1.0};  // no coin is, but sums round
  EXPECT_EQ(Ask({question})[0].row.drawn, 4198);
}

TEST_P(DeviceRowsTest, TheCoupledDrawIsThatOfTheHost) {
  for (const int size : {1, 3, 64, 4097, 9000}) {
    std::vector<Question> questions;
    for (uint64_t position = 0; position < 12; ++position) {
      questions.push_back({.logits = Logits(size, 7, 5.0f),
                           .temperature = position % 3 * 0.7,
                           .is_coupled = true,
                           .seed = 0x123456789abcdef0u + position % 2,
                           .position = 1000 * position});
    }
    const auto answers = Ask(questions);
    for (size_t i = 0; i < questions.size(); ++i) {
      Coins coins(questions[i].seed);
      EXPECT_EQ(answers[i].row.drawn,
                DrawCoupled(OnHost(questions[i]), questions[i].position, coins))
          << size << ", question " << i;
    }
  }
}

TEST_P(DeviceRowsTest, ARowThatIsNoneIsSaidToBe) {
  for (const float bad : {kInfinity, std::nanf("")}) {
    for (const int place : {0, 40, 70, 100, 130, 170, 200, 250, 4999}) {
      std::vector<float> logits = Logits(5000, 3, 2.0f);
      logits[place] = bad;
      const DrawRowResult row =
          Ask({{.logits = logits, .uniform = 0.3}})[0].row;
      EXPECT_FALSE(row.is_valid) << place;
      EXPECT_EQ(row.drawn, -1);
    }
  }
  const std::vector<float> masked(5000, -kInfinity);
  EXPECT_FALSE(Ask({{.logits = masked}})[0].row.is_valid);
}

// What fills up a step.
TEST_P(DeviceRowsTest, ARowOfNoTokensHasNoResult) {
  const std::vector<float> logits = Logits(5000, 3, 2.0f);
  const DeviceArray<float> device_logits(logits);
  const DeviceArray<DrawRow> rows(std::vector<DrawRow>{
      {}, {.logits = device_logits.data(), .vocab_size = 5000, .scale = 1}});
  const DeviceArray<DrawRowResult> answers(size_t{2});
  const DeviceArray<unsigned char> scratch(
      kernels::cuda::ScoreRowsScratchBytes(2, 5000));
  kernels::cuda::ScoreRows({.rows = rows.data(),
                            .num_rows = 2,
                            .vocab_size = 5000,
                            .scratch = scratch.data(),
                            .answers = answers.data()},
                           nullptr);
  const std::vector<DrawRowResult> read = answers.Read();
  EXPECT_EQ(read[0].argmax, -1);  // as it was
  EXPECT_TRUE(read[1].is_valid);
}

TEST_P(DeviceRowsTest, TheLowestIdIsTheArgmaxAmongEquals) {
  // A place in each warp's share, and one in another chunk.
  for (const int first : {0, 40, 70, 100, 130, 170, 200, 250, 5000}) {
    std::vector<float> logits(9000, -1.0f);
    for (const int other : {first, first + 1, first + 300, 5500, 8999}) {
      logits[other] = 2.5f;
    }
    const Question question = {.logits = logits, .temperature = 0};
    EXPECT_EQ(Ask({question})[0].row.argmax, first);
    EXPECT_EQ(Ask({question})[0].row.drawn, first);
  }
}

TEST_P(DeviceRowsTest, AnAnswerDependsOnItsOwnRowAlone) {
  std::vector<Question> questions;
  for (uint32_t i = 0; i < 9; ++i) {
    questions.push_back({.logits = Logits(4500, i, 4.0f),
                         .temperature = 0.5 * i,
                         .support = EveryNth(4500, 50 + static_cast<int>(i)),
                         .uniform = 0.1 * i,
                         .is_coupled = i % 4 == 3,
                         .position = i});
    if (questions.back().is_coupled) questions.back().support.clear();
  }
  const auto together = Ask(questions);
  for (size_t i = 0; i < questions.size(); ++i) {
    const Answer alone = Ask({questions[i]})[0];
    EXPECT_EQ(alone.row.drawn, together[i].row.drawn) << i;
    EXPECT_EQ(alone.row.tail, together[i].row.tail) << i;
    EXPECT_EQ(alone.p, together[i].p) << i;
  }
}

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
// softmax. Row 1 + v belongs behind token v, row 0 behind none. A round that
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
    }
    // Two positions, each within the bound.
    EXPECT_LE(DifferenceOfLaw(rows, q), 2 * kTotalVariation) << temperature;
  }
}

}  // namespace
}  // namespace outrider::testing
