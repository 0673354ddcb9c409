// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/token_logprobs.h"

#include <cmath>

#include "core/testing/special_values.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::kInfinity;
using ::outrider::testing::StatusIs;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Probabilities .1 .4 .2 .3.
const std::vector<float> kFiveLogits = {
    static_cast<float>(std::log(0.1)), static_cast<float>(std::log(0.4)),
    static_cast<float>(std::log(0.2)), static_cast<float>(std::log(0.3))};

RowLogprobs Of(const LogprobsOptions& options,
               const std::vector<TokenId>& tokens,
               const SamplingParams& params = {},
               const TokenHistory& history = {},
               const std::vector<float>& logits = kFiveLogits) {
  const auto result = ComputeLogprobs(
      {.row = {.logits = logits}, .history = history}, params, options, tokens);
  EXPECT_THAT(result, IsOk());
  return result.value_or(RowLogprobs{});
}

std::vector<TokenId> Ids(const RowLogprobs& row) {
  std::vector<TokenId> ids;
  for (const TokenLogprob& token : row.top) ids.push_back(token.id);
  return ids;
}

TEST(TokenLogprobsTest, TheRawRowIsTheModelsWhateverTheProcessing) {
  const TokenSeq history = {1};
  const RowLogprobs row = Of({.num_top = 2}, {0, 1},
                             {.temperature = 0,
                              .top_k = 1,
                              .repetition_penalty = 3,
                              .logit_bias = {{2, 100}}},
                             {.committed = history});
  EXPECT_THAT(row.tokens, ElementsAre(DoubleNear(std::log(0.1), 1e-7),
                                      DoubleNear(std::log(0.4), 1e-7)));
  EXPECT_THAT(Ids(row), ElementsAre(1, 3));
  EXPECT_EQ(row.top[0].logprob, row.tokens[1]);
}

TEST(TokenLogprobsTest, TheProcessedRowIsWhatTokensAreDrawnFrom) {
  const LogprobsOptions options = {.num_top = 20,
                                   .mode = LogprobsMode::kProcessed};
  const RowLogprobs row = Of(options, {3, 0}, {.top_k = 2});
  EXPECT_NEAR(row.tokens[0], std::log(3.0 / 7), 1e-7);
  EXPECT_EQ(row.tokens[1], -kInfinity);
  EXPECT_THAT(Ids(row), ElementsAre(1, 3)) << "others are impossible";
  EXPECT_EQ(row.top[1].logprob, row.tokens[0]);
  // Temperature 0 makes the choice certain.
  const RowLogprobs greedy = Of(options, {1}, {.temperature = 0});
  EXPECT_THAT(greedy.tokens, ElementsAre(0));
  EXPECT_THAT(greedy.top, ElementsAre(TokenLogprob{1, 0}));
}

// Probabilities .1 .4 .2 .3: below a lenience of 0.75 draft 3 stands.
TEST(TokenLogprobsTest, ADraftThatStandsByLenienceIsCertainAtTemperatureZero) {
  const LogprobsOptions options = {.num_top = 2,
                                   .mode = LogprobsMode::kProcessed};
  const auto of = [&](double lenience, const LogprobsOptions& asked) {
    return ComputeLogprobs({.row = {.logits = kFiveLogits}, .draft = 3},
                           {.temperature = 0, .lossy_lenience = lenience},
                           asked, {3, 1});
  };
  const auto stands = of(0.7, options);
  ASSERT_THAT(stands, IsOk());
  EXPECT_THAT(stands->tokens, ElementsAre(0, -kInfinity));
  EXPECT_THAT(stands->top, ElementsAre(TokenLogprob{3, 0}));
  const auto falls = of(0.8, options);
  ASSERT_THAT(falls, IsOk());
  EXPECT_THAT(falls->tokens, ElementsAre(-kInfinity, 0));
  EXPECT_THAT(falls->top, ElementsAre(TokenLogprob{1, 0}));
  const auto raw = of(0.7, {});
  ASSERT_THAT(raw, IsOk());
  EXPECT_NEAR(raw->tokens[0], std::log(0.3), 1e-7);
}

TEST(TokenLogprobsTest, TheProcessedRowSeesTheHistory) {
  const TokenSeq history = {1};
  const RowLogprobs row =
      Of({.num_top = 1, .mode = LogprobsMode::kProcessed}, {1},
         {.presence_penalty = 2}, {.committed = history});
  const double weight = 0.4 * std::exp(-2);
  EXPECT_NEAR(row.tokens[0], std::log(weight / (0.6 + weight)), 1e-6);
  EXPECT_THAT(Ids(row), ElementsAre(3));
}

TEST(TokenLogprobsTest, TiesGoToTheLowestId) {
  const std::vector<float> logits(5, 1.5f);
  for (const auto mode : {LogprobsMode::kRaw, LogprobsMode::kProcessed}) {
    const RowLogprobs row =
        Of({.num_top = 3, .mode = mode}, {4}, {}, {}, logits);
    EXPECT_THAT(Ids(row), ElementsAre(0, 1, 2));
    EXPECT_NEAR(row.tokens[0], std::log(0.2), 1e-15);
  }
}

TEST(TokenLogprobsTest, ATokenFarBelowTheRestHasAFiniteLogprob) {
  const RowLogprobs row = Of({}, {1}, {}, {}, {1000, -1000});
  EXPECT_THAT(row.tokens, ElementsAre(-2000));
  EXPECT_THAT(row.top, IsEmpty());
}

TEST(TokenLogprobsTest, MaskedTokensAreNoAlternatives) {
  const RowLogprobs row =
      Of({.num_top = 20}, {0}, {}, {}, {-kInfinity, 1, -kInfinity, 2});
  EXPECT_THAT(Ids(row), ElementsAre(3, 1));
  EXPECT_THAT(row.tokens, ElementsAre(-kInfinity));
}

TEST(TokenLogprobsTest, TheScoresOfARawRowAreItsLogits) {
  const auto scores =
      ScoreTokens({.row = {.logits = kFiveLogits}}, {}, {.num_top = 1}, {0, 2});
  ASSERT_THAT(scores, IsOk());
  EXPECT_THAT(scores->tokens, ElementsAre(kFiveLogits[0], kFiveLogits[2]));
  EXPECT_THAT(scores->top_ids, ElementsAre(1));
  EXPECT_THAT(scores->top_scores, ElementsAre(kFiveLogits[1]));
  EXPECT_NEAR(scores->log_normaliser, 0, 1e-7);
}

TEST(TokenLogprobsTest, BadRowsAndUnknownTokensAreErrors) {
  const std::vector<float> bad = {1, std::nanf("")};
  EXPECT_THAT(ComputeLogprobs({.row = {.logits = bad}}, {}, {}, {}),
              StatusIs(absl::StatusCode::kInternal));
  for (const TokenId token : {-1, 4}) {
    EXPECT_THAT(
        ComputeLogprobs({.row = {.logits = kFiveLogits}}, {}, {}, {token}),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("row of 4 logits")));
  }
}

}  // namespace
}  // namespace outrider
