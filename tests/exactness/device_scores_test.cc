// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of what a GPU tells of a row in place of it, against those
// of the whole row.
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/cuda_model/answer_threads.h"
#include "core/cuda_model/row_scorer.h"
#include "core/cuda_model/small_model.h"
#include "core/sampling/ask_rows.h"
#include "core/sampling/token_logprobs.h"
#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "tests/exactness/scored_rows.h"

namespace outrider::testing {
namespace {

constexpr int kVocabSize = 5000;  // padding of the head left out
constexpr int kHeadSize = 5008;
constexpr float kMasked = -std::numeric_limits<float>::infinity();

// The text before the row.
const std::vector<TokenId>& Text() {
  static const std::vector<TokenId> text = {0, 7, 30, 7, 4999, 12};
  return text;
}
const std::vector<TokenId>& Support() {
  static const std::vector<TokenId> support = {1, 7, 300, 4096, 4999};
  return support;
}

DraftBlock BlockOf(RuleKind rule, const LogprobsOptions& logprobs) {
  return {.start = Text().size(),
          .rule = rule,
          .supports = {Support()},
          .history = {.committed = Text(),
                      .drafts = absl::MakeConstSpan(Support()).first(1),
                      .prompt_length = 2},
          .logprobs = logprobs};
}

class DeviceScoresTest : public ::testing::Test {
 protected:
  DeviceScoresTest() : gpu_(GpuUnderTest()) {
    auto scorer =
        RowScorer::Make(gpu_, counters_,
                        {.max_rows = 2,
                         .vocab_size = kHeadSize,
                         .threads = std::make_shared<AnswerThreads>(
                             AnswerThreads::Options{.num_threads = 1})});
    EXPECT_THAT(scorer, IsOk());
    scorer_ = *std::move(scorer);
  }

  // What comes of the row where it is asked that.
  LogitRows::AskedRow Bring(const std::vector<float>& logits,
                            const RowQuestion& question) {
    const auto memory =
        DeviceMemory::Allocate(gpu_, kHeadSize * sizeof(float), "a row");
    EXPECT_THAT(memory, IsOk());
    gpu_->Upload(memory->data(), logits.data(), kHeadSize * sizeof(float));
    const auto* const row = memory->as<const float>();
    std::vector<WantedRow> wanted = {{.question = &question}};
    scorer_->Ask(row, absl::MakeSpan(wanted), /*num_rows=*/1);
    scorer_->Answer(/*num_rows=*/1);
    EXPECT_THAT(scorer_->Download(row, absl::MakeSpan(wanted)), IsOk());
    EXPECT_EQ(gpu_->Finish(), "");
    scorer_->TakeAnswers(absl::MakeSpan(wanted));
    EXPECT_THAT(scorer_->FetchOthers(row, absl::MakeSpan(wanted)), IsOk());
    return std::move(wanted[0].result);
  }

  // Scores of all tokens that may come there, by the answer and by the row.
  void ExpectAsOfTheRow(const std::vector<float>& logits,
                        const SamplingParams& params, RuleKind rule,
                        const LogprobsOptions& options) {
    const DraftBlock block = BlockOf(rule, options);
    const auto questions = AskRows(block, params, /*seed=*/5, kVocabSize);
    ASSERT_EQ(questions.size(), 2u);
    for (size_t i = 0; i < questions.size(); ++i) {
      const auto row = Bring(logits, questions[i]);
      ASSERT_TRUE(row.answer.has_value());
      TokenHistory history = block.history;
      history.drafts = history.drafts.first(i);
      const absl::Span<const float> whole =
          absl::MakeConstSpan(logits).first(kVocabSize);
      const TokenSeq tokens = MayCome(*row.answer, questions[i]);
      const auto told =
          ScoreTokens({.row = {.answer = &*row.answer}, .history = history},
                      params, options, tokens);
      const auto right =
          ScoreTokens({.row = {.logits = whole}, .history = history}, params,
                      options, tokens);
      ASSERT_THAT(told, IsOk());
      ASSERT_THAT(right, IsOk());
      ExpectNear(ToLogprobs(*told), ToLogprobs(*right));
      if (options.mode == LogprobsMode::kRaw) {
        EXPECT_EQ(told->tokens, right->tokens);
        EXPECT_EQ(told->top_scores, right->top_scores);
      }
    }
  }

  const std::shared_ptr<Gpu> gpu_;
  DeviceCounters counters_;
  std::unique_ptr<RowScorer> scorer_;

 private:
  static TokenSeq MayCome(const RowAnswer& answer,
                          const RowQuestion& question) {
    TokenSeq tokens;
    if (const auto* draw = std::get_if<DrawAnswer>(&answer)) {
      const auto& support = std::get<DrawQuestion>(question.what).support;
      tokens.assign(support.begin(), support.end());
      if (draw->drawn.has_value()) tokens.push_back(*draw->drawn);
    } else {
      const auto support = std::get<TopAnswer>(answer).row->support();
      tokens.assign(support.begin(), support.end());
    }
    EXPECT_FALSE(tokens.empty());
    return tokens;
  }
  static void ExpectNear(const RowLogprobs& told, const RowLogprobs& right) {
    ASSERT_EQ(told.tokens.size(), right.tokens.size());
    for (size_t i = 0; i < told.tokens.size(); ++i) {
      if (std::isinf(right.tokens[i])) {
        EXPECT_EQ(told.tokens[i], right.tokens[i]);
      } else {
        EXPECT_NEAR(told.tokens[i], right.tokens[i], kTotalVariation);
      }
    }
    ASSERT_EQ(told.top.size(), right.top.size());
    for (size_t i = 0; i < told.top.size(); ++i) {
      EXPECT_EQ(told.top[i].id, right.top[i].id) << i;
      EXPECT_NEAR(told.top[i].logprob, right.top[i].logprob, kTotalVariation);
    }
  }
};

// What rows are drawn from, and what they are cut to.
std::vector<SamplingParams> Processings() {
  return {{},
          {.temperature = 0.6},
          {.temperature = 1.7},
          {.temperature = 0},
          {.temperature = 0.8,
           .repetition_penalty = 1.3,
           .presence_penalty = 0.4,
           .frequency_penalty = 0.9,
           .logit_bias = {{1, 0.5}, {4096, -2.0}}},
          {.temperature = 0, .frequency_penalty = 1.5},
          {.top_k = 40},
          {.temperature = 0.7, .top_p = 0.8},
          {.temperature = 1.3, .top_k = 3, .logit_bias = {{2, 9.0}}},
          {.min_p = 0.1, .presence_penalty = 1.2}};
}

TEST_F(DeviceScoresTest, ScoresAreThoseOfTheWholeRow) {
  uint32_t data = 0;
  for (const SamplingParams& params : Processings()) {
    for (const auto mode : {LogprobsMode::kRaw, LogprobsMode::kProcessed}) {
      SCOPED_TRACE(++data);
      std::vector<float> logits = Logits(kHeadSize, data, 6.0f);
      logits[data] = kMasked;
      logits[data + 1] = logits[data + 2] = 5.5f;  // a tie
      for (const auto rule : {RuleKind::kRejection, RuleKind::kCoupled}) {
        ExpectAsOfTheRow(
            logits, params, rule,
            {.num_top = static_cast<int>(data % 3) * 10, .mode = mode});
      }
    }
  }
  EXPECT_EQ(counters_.num_copied_rows, 0);
}

// Such is the next word of a text that leaves no choice.
TEST_F(DeviceScoresTest, ATokenFarBelowTheGreatestHasItsOwnScore) {
  std::vector<float> logits = Logits(kHeadSize, 3, 2.0f);
  logits[20] = 90;
  logits[300] = -90;
  for (const auto mode : {LogprobsMode::kRaw, LogprobsMode::kProcessed}) {
    ExpectAsOfTheRow(logits, {}, RuleKind::kRejection,
                     {.num_top = 20, .mode = mode});
  }
}

TEST_F(DeviceScoresTest, RowsOfAlternativesThatAreMaskedHaveFewer) {
  std::vector<float> logits(kHeadSize, kMasked);
  for (const int token : {7, 11, 13}) logits[token] = 0.1f * token;
  for (const auto mode : {LogprobsMode::kRaw, LogprobsMode::kProcessed}) {
    ExpectAsOfTheRow(logits, {}, RuleKind::kRejection,
                     {.num_top = 20, .mode = mode});
  }
}

TEST_F(DeviceScoresTest, ARowWhoseAnswerDoesNotDecideComesWholeAndIsCounted) {
  // Nearly all weigh alike: the set that reaches top-p is none of 1024.
  std::vector<float> logits = Logits(kHeadSize, 3, 0.01f);
  const SamplingParams params = {.top_p = 0.9};
  const auto questions = AskRows(BlockOf(RuleKind::kRejection, {.num_top = 3}),
                                 params, /*seed=*/5, kVocabSize);
  const auto row = Bring(logits, questions[0]);
  EXPECT_FALSE(row.answer.has_value());
  ASSERT_NE(row.logits, nullptr);
  EXPECT_EQ(row.logits.get()[17], logits[17]);
  EXPECT_EQ(counters_.num_undecided_rows, 1);
  EXPECT_EQ(counters_.num_copied_rows, 1);
}

}  // namespace
}  // namespace outrider::testing
