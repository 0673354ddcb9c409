// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/adjust_logits.h"

#include "core/testing/special_values.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::kInfinity;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Prompt 0 0 1, generated 2 2, drafts 3.
const TokenSeq kCommitted = {0, 0, 1, 2, 2};
const TokenSeq kDrafts = {3};
const TokenHistory kHistory = {
    .committed = kCommitted, .drafts = kDrafts, .prompt_length = 3};
const std::vector<float> kLogits = {4, -4, 2, 1, 8};

std::vector<double> Adjusted(const SamplingParams& params,
                             const TokenHistory& history = kHistory) {
  const auto values = AdjustLogits(kLogits, params, history);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.value_or(std::vector<double>{});
}

TEST(AdjustLogitsTest, DefaultsAskForNothing) {
  EXPECT_FALSE(AdjustsLogits({}));
  EXPECT_FALSE(AdjustsLogits(
      {.temperature = 0, .top_k = 3, .top_p = 0.5, .min_p = 0.1}));
  EXPECT_TRUE(AdjustsLogits({.repetition_penalty = 1.1}));
  EXPECT_TRUE(AdjustsLogits({.presence_penalty = -0.1}));
  EXPECT_TRUE(AdjustsLogits({.frequency_penalty = 0.1}));
  EXPECT_TRUE(AdjustsLogits({.logit_bias = {{0, 0.1}}}));
}

TEST(AdjustLogitsTest, RepetitionCountsPromptGeneratedTokensAndDraftsOnce) {
  EXPECT_THAT(Adjusted({.repetition_penalty = 2}),
              ElementsAre(2, -8, 1, 0.5, 8));
  EXPECT_THAT(Adjusted({.repetition_penalty = 0.5}),
              ElementsAre(8, -2, 4, 2, 8));
}

TEST(AdjustLogitsTest, FrequencyCountsGeneratedTokensAndDraftsOnly) {
  EXPECT_THAT(Adjusted({.frequency_penalty = 0.5}),
              ElementsAre(4, -4, 1, 0.5, 8));
  EXPECT_THAT(Adjusted({.frequency_penalty = -2}), ElementsAre(4, -4, 6, 3, 8));
}

TEST(AdjustLogitsTest, PresenceLooksAtGeneratedTokensAndDraftsOnly) {
  EXPECT_THAT(Adjusted({.presence_penalty = 0.5}),
              ElementsAre(4, -4, 1.5, 0.5, 8));
}

TEST(AdjustLogitsTest, BiasComesFirstAndThenRepetitionFrequencyPresence) {
  // (2 + 1) / 2 - 2 * 0.25 - 0.5, and (-4 + 8) / 2.
  EXPECT_THAT(Adjusted({.repetition_penalty = 2,
                        .presence_penalty = 0.5,
                        .frequency_penalty = 0.25,
                        .logit_bias = {{1, 8}, {2, 1}}}),
              ElementsAre(2, 2, 0.5, -0.25, 8));
}

TEST(AdjustLogitsTest, AMaskStaysAMask) {
  const std::vector<float> logits = {-kInfinity, -kInfinity, 0, 0, 0};
  const auto values = AdjustLogits(logits,
                                   {.repetition_penalty = 0.01,
                                    .presence_penalty = -2,
                                    .frequency_penalty = -2,
                                    .logit_bias = {{0, 100}}},
                                   kHistory);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ((*values)[0], -kInfinity);
  EXPECT_EQ((*values)[1], -kInfinity);
}

TEST(AdjustLogitsTest, AnEmptyHistoryChangesNothingButTheBias) {
  EXPECT_THAT(Adjusted({.repetition_penalty = 2,
                        .presence_penalty = 1,
                        .frequency_penalty = 1,
                        .logit_bias = {{4, -3}}},
                       {}),
              ElementsAre(4, -4, 2, 1, 5));
}

TEST(AdjustLogitsTest, TokensThatTheRowDoesNotHaveAreAnError) {
  constexpr auto kInternal = absl::StatusCode::kInternal;
  for (const TokenId bad : {-1, 5}) {
    const TokenSeq tokens = {bad};
    EXPECT_THAT(AdjustLogits(kLogits, {.repetition_penalty = 2},
                             {.committed = tokens, .prompt_length = 1}),
                StatusIs(kInternal, HasSubstr("history")));
    EXPECT_THAT(
        AdjustLogits(kLogits, {.presence_penalty = 1}, {.drafts = tokens}),
        StatusIs(kInternal, HasSubstr("history")));
    EXPECT_THAT(AdjustLogits(kLogits, {.logit_bias = {{bad, 1}}}, {}),
                StatusIs(kInternal, HasSubstr("logit_bias")));
  }
}

TEST(AdjustLogitsTest, APromptLongerThanTheTextIsAllOfIt) {
  EXPECT_THAT(Adjusted({.presence_penalty = 1},
                       {.committed = kCommitted, .prompt_length = 99}),
              ElementsAre(4, -4, 2, 1, 8));
}

std::vector<TokenId> MovedTokens(const SamplingParams& params) {
  const auto moves = MovesOf(params, kHistory, /*vocab_size=*/5);
  EXPECT_TRUE(moves.ok()) << moves.status();
  return TokensOf(moves.value_or(LogitMoves()));
}

TEST(LogitMovesTest, TokensThatMayMoveAreThoseOfTextAndBias) {
  EXPECT_THAT(MovedTokens({}), ElementsAre());
  EXPECT_THAT(MovedTokens({.presence_penalty = 1}), ElementsAre(2, 3));
  EXPECT_THAT(MovedTokens({.frequency_penalty = 1, .logit_bias = {{4, 1.0}}}),
              ElementsAre(2, 3, 4));
  EXPECT_THAT(MovedTokens({.repetition_penalty = 2, .logit_bias = {{1, 1.0}}}),
              ElementsAre(0, 1, 2, 3));
}

TEST(LogitMovesTest, GrowByATokenAsTheHistoryDoes) {
  const TokenSeq drafts = {3, 1, 3};
  for (const SamplingParams& params :
       {SamplingParams{.logit_bias = {{4, 2.0}}},
        SamplingParams{.frequency_penalty = 0.5, .logit_bias = {{1, 2.0}}},
        SamplingParams{.repetition_penalty = 2, .presence_penalty = 1}}) {
    const TokenHistory before = {.committed = kCommitted, .prompt_length = 3};
    LogitMoves moves = *MovesOf(params, before, 5);
    for (const TokenId token : drafts) AddGenerated(token, params, moves);
    TokenHistory after = before;
    after.drafts = drafts;
    const LogitMoves all = *MovesOf(params, after, 5);
    ASSERT_EQ(TokensOf(moves), TokensOf(all));
    for (size_t i = 0; i < all.tokens.size(); ++i) {
      EXPECT_EQ(moves.tokens[i].num_generated, all.tokens[i].num_generated);
      EXPECT_EQ(moves.tokens[i].bias, all.tokens[i].bias);
    }
  }
}

}  // namespace
}  // namespace outrider
