// SPDX-License-Identifier: Apache-2.0
// Rows of logits as core/kernels/cuda scores them, against the production
// sampler: probabilities and draws.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/score_rows.h"
#include "core/kernels/random_values.h"
#include "core/sampling/coins.h"
#include "core/sampling/coupled.h"
#include "core/sampling/process.h"
#include "gtest/gtest.h"
#include "tests/exactness/scored_rows.h"

namespace outrider::testing {
namespace {

using kernels::RandomValues;
using kernels::cuda::DeviceArray;
using kernels::cuda::DrawRow;
using kernels::cuda::DrawRowResult;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Every step-th token, and the first and the last.
std::vector<TokenId> EveryNth(int vocab_size, int step) {
  std::vector<TokenId> support;
  for (int id = 0; id < vocab_size; id += step) support.push_back(id);
  if (support.back() != vocab_size - 1) support.push_back(vocab_size - 1);
  return support;
}

void ExpectAsOnHost(const Question& question, const Answer& answer) {
  const Distribution p = OnHost(question);
  ASSERT_TRUE(answer.row.is_valid);
  const std::vector<double> row = MovedRow(question);
  EXPECT_EQ(answer.row.argmax,
            std::max_element(row.begin(), row.end()) - row.begin());
  double on_support = 0, difference = 0;
  for (size_t i = 0; i < question.support.size(); ++i) {
    on_support += p(question.support[i]);
    difference += std::abs(answer.p[i] - p(question.support[i]));
  }
  EXPECT_LE(difference / 2, kTotalVariation);
  EXPECT_NEAR(answer.tail_mass, 1 - on_support, kTotalVariation);
  if (!question.is_coupled) return;
  Coins coins(question.seed);
  EXPECT_EQ(answer.row.drawn, DrawCoupled(p, question.position, coins));
}

// Runs threads in three orders, with other logits each time.
class DeviceRowsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  DeviceRowsTest() { kernels::cuda::emulation::SetSeed(GetParam()); }

  static std::vector<float> Logits(int size, uint32_t seed, float spread) {
    return testing::Logits(size, seed + DataOfOrder(GetParam()), spread);
  }
};
INSTANTIATE_TEST_SUITE_P(Orders, DeviceRowsTest,
                         ::testing::Values(uint64_t{1}));
INSTANTIATE_TEST_SUITE_P(OtherOrders, DeviceRowsTest,
                         ::testing::Values(uint64_t{2}, uint64_t{3}));

// Sizes around those of a thread's run, a warp's, and a chunk.
TEST_P(DeviceRowsTest, ProbabilitiesAreThoseOfTheHost) {
  for (const int size : {1, 2, 15, 17, 513, 4095, 4096, 4097, 9000}) {
    for (const double temperature : {0.0, 0.3, 1.0, 2.5}) {
      const Question question = {.logits = Logits(size, size, 12.0f),
                                 .temperature = temperature,
                                 .support = EveryNth(size, 7)};
      SCOPED_TRACE(size);
      ExpectAsOnHost(question, Ask({question})[0]);
    }
  }
}

TEST_P(DeviceRowsTest, AnswersAreThoseOfTheHostFromOneToSixteenRows) {
  std::vector<Question> questions;
  for (uint32_t i = 0; i < 16; ++i) {
    questions.push_back({.logits = Logits(70, i, 5.0f),
                         .temperature = 0.3 * (i % 5),
                         .is_coupled = i % 2 == 1,
                         .seed = 0x123456789abcdef0u + i,
                         .position = 30 + i});
    if (i % 2 == 0) {
      questions.back().support = EveryNth(70, 2 + static_cast<int>(i));
    }
    const auto answers = Ask(questions);
    for (uint32_t j = 0; j <= i; ++j) {
      SCOPED_TRACE(i);
      ExpectAsOnHost(questions[j], answers[j]);
    }
  }
}

// Every step-th token is moved, by whatever there is to move it.
LogitMoves Moves(int vocab_size, int step) {
  LogitMoves moves = {.repetition_penalty = 1.7,
                      .frequency_penalty = 0.3,
                      .presence_penalty = -0.6};
  for (const TokenId token : EveryNth(vocab_size, step)) {
    moves.tokens.push_back({.token = token,
                            .num_generated = token % 4 - 1,
                            .bias = token % 3 == 0 ? token % 7 - 3.0 : 0.0});
  }
  return moves;
}

// They are on the support and off it, and in each of a row's chunks.
TEST_P(DeviceRowsTest, MovedTokensWeighWhatTheHostHasThemWeigh) {
  for (const int size : {1, 2, 17, 513, 4097, 9000}) {
    for (const double temperature : {0.3, 1.0}) {
      Question question = {.logits = Logits(size, size, 8.0f),
                           .temperature = temperature,
                           .support = EveryNth(size, 7),
                           .moves = Moves(size, 5)};
      Question race = question;
      race.support.clear();
      race.is_coupled = true;
      race.position = static_cast<uint64_t>(size);
      const auto answers = Ask({question, race, question});
      SCOPED_TRACE(size);
      ExpectAsOnHost(question, answers[0]);
      ExpectAsOnHost(race, answers[1]);
      ExpectAsOnHost(question, answers[2]);
    }
  }
}

TEST_P(DeviceRowsTest, WeightsAreOfTheGreatestOfWhatBiasLeaves) {
  std::vector<float> logits = Logits(5000, 3, 2.0f);
  logits[4100] = 90.0f;  // all others weigh nothing beside it
  LogitMoves moves = {.tokens = {{.token = 4100, .bias = -100.0}}};
  const Question question = {
      .logits = logits, .support = {1, 4100}, .moves = moves};
  ExpectAsOnHost(question, Ask({question})[0]);
  moves.tokens = {{.token = 7, .bias = 100.0}};
  const Question raised = {.logits = logits, .support = {7, 8}, .moves = moves};
  ExpectAsOnHost(raised, Ask({raised})[0]);
}

TEST_P(DeviceRowsTest, AMovedLogitThatIsNoneOrMaskedStaysSo) {
  std::vector<float> logits = Logits(5000, 3, 2.0f);
  const LogitMoves moves = {
      .repetition_penalty = 0.01,
      .tokens = {{.token = 4500, .num_generated = 1, .bias = 100.0}}};
  logits[4500] = -kInfinity;
  const Question masked = {.logits = logits, .support = {4500}, .moves = moves};
  ExpectAsOnHost(masked, Ask({masked})[0]);
  for (const float bad : {kInfinity, std::nanf(""), 3e38f}) {
    logits[4500] = bad;
    EXPECT_FALSE(Ask({{.logits = logits, .moves = moves}})[0].row.is_valid)
        << bad;
  }
}

// One that is as great without is known to the last bit.
TEST_P(DeviceRowsTest, ALogitThatIsMovedTooFarForFloat32IsNone) {
  const LogitMoves far = {.frequency_penalty = -2.0,
                          .tokens = {{.token = 9, .num_generated = 100000}}};
  std::vector<float> logits = Logits(5000, 3, 2.0f);
  const auto draw = [&](double temperature, const LogitMoves& moves) {
    return Ask({{.logits = logits,
                 .temperature = temperature,
                 .moves = moves}})[0]
        .row;
  };
  EXPECT_EQ(draw(1.0, far).drawn, 9);
  EXPECT_FALSE(draw(1e-3, far).is_valid);
  EXPECT_EQ(draw(1e-3, far).drawn, -1);
  logits[9] = 2e5f;
  EXPECT_EQ(draw(1e-3, {}).drawn, 9);
}

// The tokens before the drawn one hold less than the coin, with it more.
TEST_P(DeviceRowsTest, ACoinDrawsTheTokenWhoseShareItFallsInto) {
  for (const int size : {2, 40, 4097, 9000}) {
    std::vector<Question> questions;
    for (const float uniform : RandomValues(60, 5)) {
      questions.push_back({.logits = Logits(size, 11, 6.0f),
                           .support = EveryNth(size, size == 2 ? 2 : 3),
                           .uniform = (uniform + 1.0) / 2.0,
                           .moves = Moves(size, 4)});
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
      EXPECT_EQ(answers[i].row.drawn_logit, questions[i].logits[drawn]);
      const double coin = questions[i].uniform * below.back();
      EXPECT_LT(below[drawn], below[drawn + 1]) << "on the support";
      EXPECT_LE(below[drawn], coin + kTotalVariation);
      EXPECT_GE(below[drawn + 1], coin - kTotalVariation);
    }
  }
}

// What is below a token excludes it, what is up to it includes it.
TEST_P(DeviceRowsTest, ACoinOnTheEdgeOfTwoTokensDrawsTheSecond) {
  for (const int size : {4, 8192}) {  // in two chunks, each with half
    const std::vector<float> logits(static_cast<size_t>(size), 0.5f);
    for (const double uniform : {0.0, 0.25, 0.5, 0.75}) {
      EXPECT_EQ(Ask({{.logits = logits, .uniform = uniform}})[0].row.drawn,
                uniform * size);
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
      SCOPED_TRACE(size);
      ExpectAsOnHost(questions[i], answers[i]);
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
      EXPECT_EQ(row.drawn_logit, 0);
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
    for (const int other : {first, first + 1, first + 256, 5500, 8999}) {
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
    if (i % 3 == 1) {
      questions.back().moves = Moves(4500, 4 + static_cast<int>(i));
    }
  }
  const auto together = Ask(questions);
  for (size_t i = 0; i < questions.size(); ++i) {
    const Answer alone = Ask({questions[i]})[0];
    EXPECT_EQ(alone.row.drawn, together[i].row.drawn) << i;
    EXPECT_EQ(alone.row.tail, together[i].row.tail) << i;
    EXPECT_EQ(alone.p, together[i].p) << i;
  }
}

}  // namespace
}  // namespace outrider::testing
