// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/row_scorer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/base/mutex.h"
#include "core/cuda_model/small_model.h"
#include "core/kernels/random_values.h"
#include "core/testing/answer_on_host.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using testing::AnswerOnHost;

constexpr int kVocabulary = 300;
constexpr int kMaxRows = 8;
constexpr int kTokens = 290;  // the others are padding of the head
constexpr double kWeightTolerance = 1e-5;

class RowScorerTest : public ::testing::Test {
 protected:
  RowScorerTest() : gpu_(GpuUnderTest()) {
    auto scorer = RowScorer::Make(
        gpu_, counters_,
        {.max_rows = kMaxRows,
         .vocab_size = kVocabulary,
         .threads = std::make_shared<AnswerThreads>(
             AnswerThreads::Options{.num_threads = 2, .logits_of_part = 100})});
    EXPECT_TRUE(scorer.ok()) << scorer.status();
    scorer_ = *std::move(scorer);
    for (uint32_t i = 0; i < 8; ++i) {
      rows_.push_back(kernels::RandomValues(kVocabulary, i + 1));
      for (float& x : rows_.back()) x *= 6.0f;
    }
  }

  // The rows with these questions; null: the row itself. A graph, too, runs it
  // for more rows than there are.
  std::vector<WantedRow> Bring(const std::vector<const RowQuestion*>& questions,
                               int num_launched = kMaxRows) {
    std::vector<float> all;
    std::vector<WantedRow> wanted;
    for (size_t i = 0; i < questions.size(); ++i) {
      all.insert(all.end(), rows_[i].begin(), rows_[i].end());
      wanted.push_back({.question = questions[i]});
    }
    const auto memory =
        DeviceMemory::Allocate(gpu_, all.size() * sizeof(float), "rows");
    EXPECT_TRUE(memory.ok());
    gpu_->Upload(memory->data(), all.data(), all.size() * sizeof(float));
    const float* const logits = memory->as<const float>();
    scorer_->Ask(logits, absl::MakeSpan(wanted), num_launched);
    scorer_->Answer(num_launched);
    const auto whole = scorer_->Download(logits, absl::MakeSpan(wanted));
    EXPECT_TRUE(whole.ok()) << whole;
    EXPECT_EQ(gpu_->Finish(), "");
    scorer_->TakeAnswers(absl::MakeSpan(wanted));
    awaits_twice_ = std::any_of(wanted.begin(), wanted.end(), IsUndecided);
    const auto others = scorer_->FetchOthers(logits, absl::MakeSpan(wanted));
    EXPECT_TRUE(others.ok()) << others;
    return wanted;
  }

  void ExpectAnswered(const WantedRow& row, size_t number) const {
    ASSERT_TRUE(row.result.answer.has_value()) << number;
    EXPECT_EQ(row.result.logits, nullptr);
    const auto right = AnswerOnHost(*row.question, rows_[number]);
    ASSERT_TRUE(right.has_value());
    if (const auto* draw = std::get_if<DrawAnswer>(&*right)) {
      const auto& told = std::get<DrawAnswer>(*row.result.answer);
      EXPECT_EQ(told.drawn, draw->drawn);
      EXPECT_EQ(told.drawn_logit, draw->drawn_logit);
      EXPECT_NEAR(told.tail, draw->tail, kWeightTolerance * draw->tail);
      ASSERT_EQ(told.support_weights.size(), draw->support_weights.size());
      for (size_t i = 0; i < told.support_weights.size(); ++i) {
        EXPECT_NEAR(told.support_weights[i], draw->support_weights[i],
                    kWeightTolerance * draw->support_weights[i]);
      }
      ASSERT_EQ(told.scored.has_value(), draw->scored.has_value());
      if (told.scored.has_value()) ExpectNear(*told.scored, *draw->scored);
      return;
    }
    ExpectNear(std::get<TopAnswer>(*row.result.answer),
               std::get<TopAnswer>(*right));
  }
  static void ExpectNear(const TopAnswer& told, const TopAnswer& top) {
    EXPECT_EQ(told.tokens, top.tokens);
    EXPECT_EQ(told.token_logits, top.token_logits);
    EXPECT_EQ(told.ids, top.ids);
    EXPECT_EQ(told.logits, top.logits);
    EXPECT_EQ(told.is_all, top.is_all);
    EXPECT_NEAR(told.rest, top.rest, kWeightTolerance * top.rest);
    EXPECT_NEAR(told.top_probability, top.top_probability, kWeightTolerance);
  }
  void ExpectWhole(const WantedRow& row, size_t number) const {
    EXPECT_FALSE(row.result.answer.has_value()) << number;
    ASSERT_NE(row.result.logits, nullptr);
    for (size_t i = 0; i < kVocabulary; ++i) {
      if (std::isnan(rows_[number][i])) continue;
      ASSERT_EQ(row.result.logits.get()[i], rows_[number][i]);
    }
  }

  const std::shared_ptr<Gpu> gpu_;
  DeviceCounters counters_;
  std::unique_ptr<RowScorer> scorer_;
  std::vector<std::vector<float>> rows_;
  bool awaits_twice_ = false;  // in what was brought last
};

const std::vector<TokenId>& Support() {
  static const std::vector<TokenId> support = {0, 7, 8, 100, 289};
  return support;
}

RowQuestion Draws(double uniform) {
  return {.vocab_size = kTokens,
          .temperature = 0.8,
          .what = DrawQuestion{.support = Support(), .uniform = uniform}};
}
RowQuestion Races(uint64_t position) {
  return {.vocab_size = kTokens,
          .temperature = 1,
          .what = DrawQuestion{
              .noise = DrawQuestion::Noise{.seed = 5, .position = position}}};
}
RowQuestion AsksTop(int count, bool suffices = true) {
  return {.vocab_size = kTokens,
          .temperature = 1,
          .what = TopQuestion{
              .count = count,
              .tokens = {3, 4, 280},
              .suffices = [suffices](const TopAnswer&) { return suffices; }}};
}

RowQuestion Moved(RowQuestion question) {
  std::get<DrawQuestion>(question.what).moves = {
      .repetition_penalty = 1.5,
      .presence_penalty = 0.5,
      .tokens = {{.token = 0, .num_generated = 0},
                 {.token = 7, .num_generated = 3},
                 {.token = 288, .bias = 4.0}}};
  return question;
}

TEST_F(RowScorerTest, EachRowIsAnsweredByItsOwnQuestion) {
  const RowQuestion draws = Moved(Draws(0.7)), other = Draws(0.1),
                    races = Moved(Races(17)), top = AsksTop(12),
                    all = AsksTop(1000),
                    undecided = AsksTop(9, /*suffices=*/false);
  const auto rows =
      Bring({&top, &draws, nullptr, &undecided, &races, &all, &other, nullptr});
  for (const size_t answered : {0, 1, 4, 5, 6}) {
    ExpectAnswered(rows[answered], answered);
  }
  for (const size_t whole : {2, 3, 7}) ExpectWhole(rows[whole], whole);
  EXPECT_EQ(counters_.num_answered_rows, 5);
  EXPECT_EQ(counters_.num_copied_rows, 3);
  EXPECT_EQ(counters_.num_undecided_rows, 1);
}

RowQuestion Scored(RowQuestion question) {
  std::get<DrawQuestion>(question.what).scored = TopQuestion{
      .count = 5, .tokens = Support(), .wants_top_probability = true};
  return question;
}

TEST_F(RowScorerTest, ARowThatIsDrawnFromIsScoredBesides) {
  const RowQuestion top = AsksTop(12), draws = Scored(Moved(Draws(0.7))),
                    other = Draws(0.1), races = Scored(Races(17));
  const auto rows = Bring({&draws, &top, nullptr, &other, &races, &top});
  for (const size_t answered : {0, 1, 3, 4, 5}) {
    ExpectAnswered(rows[answered], answered);
  }
  ExpectWhole(rows[2], 2);
  EXPECT_EQ(counters_.num_answered_rows, 5);
}

TEST_F(RowScorerTest, OnlyARowWhoseAnswerDoesNotDecideIsAwaitedByItself) {
  const RowQuestion draws = Draws(0.5),
                    undecided = AsksTop(9, /*suffices=*/false);
  auto rows = Bring({nullptr, &draws, nullptr});
  EXPECT_FALSE(awaits_twice_);
  for (const size_t whole : {0, 2}) ExpectWhole(rows[whole], whole);
  ExpectAnswered(rows[1], 1);
  rows = Bring({nullptr, &undecided});
  EXPECT_TRUE(awaits_twice_);
  for (const size_t whole : {0, 1}) ExpectWhole(rows[whole], whole);
}

TEST_F(RowScorerTest, TheArgmaxHasAllWeightAtTemperatureZero) {
  RowQuestion question = Draws(0.9);
  question.temperature = 0;
  ExpectAnswered(Bring({&question})[0], 0);
}

TEST_F(RowScorerTest, EachNumberOfRowsIsAnsweredWhateverWasAskedBefore) {
  const RowQuestion draws = Moved(Draws(0.7)), races = Races(17),
                    top = AsksTop(12), all = AsksTop(1000);
  for (const int num_launched : {8, 3, 4, 2, 8, 2}) {
    const auto rows = num_launched == 2 ? Bring({&all, &races}, num_launched)
                                        : Bring({&draws, &top}, num_launched);
    for (const size_t i : {0, 1}) ExpectAnswered(rows[i], i);
  }
}

TEST_F(RowScorerTest, ARowThatIsNoneComesWhole) {
  rows_[0][289] = std::nanf("");
  rows_[1][0] = std::numeric_limits<float>::infinity();
  const RowQuestion draws = Draws(0.5), top = AsksTop(12);
  const auto rows = Bring({&top, &draws});
  for (size_t i = 0; i < 2; ++i) ExpectWhole(rows[i], i);
}

TEST_F(RowScorerTest, AMovedTokenMayBeTheGreatestOfARow) {
  for (const std::vector<TokenId>& tokens :
       {std::vector<TokenId>{}, {3, 4, 280}}) {
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i][4] += 2.0f * (i % 3);
    RowQuestion question = AsksTop(12);
    auto& top = std::get<TopQuestion>(question.what);
    top.tokens = tokens;
    top.wants_top_probability = true;
    const auto rows = Bring({&question, &question, &question});
    for (size_t i = 0; i < rows.size(); ++i) {
      ExpectAnswered(rows[i], i);
      const auto end = rows_[i].begin() + kTokens;
      const float greatest = *std::max_element(rows_[i].begin(), end);
      double mass = 0;
      for (auto x = rows_[i].begin(); x != end; ++x) {
        mass += std::exp(double{*x} - double{greatest});
      }
      const double right = 1 / mass;
      EXPECT_NEAR(std::get<TopAnswer>(*rows[i].result.answer).top_probability,
                  right, kWeightTolerance * right);
    }
  }
}

TEST_F(RowScorerTest, ManyAnswersAreLookedAtByTwoThreadsEachAtItsOwn) {
  Mutex mu;
  CondVar another;
  std::set<std::thread::id> who;
  std::vector<RowQuestion> questions;
  for (int i = 0; i < 5; ++i) questions.push_back(AsksTop(150 + i));
  for (RowQuestion& question : questions) {
    std::get<TopQuestion>(question.what).suffices = [&](const TopAnswer&) {
      const MutexLock lock(mu);
      who.insert(std::this_thread::get_id());
      another.NotifyAll();
      const auto end =
          std::chrono::steady_clock::now() + std::chrono::seconds(9);
      while (who.size() < 2 && another.WaitUntil(mu, end)) {
      }
      return true;
    };
  }
  const RowQuestion draws = Scored(Moved(Draws(0.7))), other = Draws(0.1);
  const auto rows =
      Bring({&questions[0], &draws, &questions[1], &other, &questions[2],
             nullptr, &questions[3], &questions[4]});
  EXPECT_EQ(who.size(), 2u);
  for (RowQuestion& question : questions) {
    std::get<TopQuestion>(question.what).suffices = {};  // for the host
  }
  for (const size_t i : {0, 1, 2, 3, 4, 6, 7}) ExpectAnswered(rows[i], i);
  ExpectWhole(rows[5], 5);
  EXPECT_EQ(counters_.num_answered_rows, 7);
}

// They would have a kernel read where nothing is.
TEST_F(RowScorerTest, WhatIsNoQuestionOfTheRowIsNotAsked) {
  const std::vector<TokenId> beyond = {3, kTokens}, falling = {9, 9},
                             negative = {-1};
  std::vector<RowQuestion> wrong(8, Draws(0.5));
  std::get<DrawQuestion>(wrong[0].what).support = beyond;
  std::get<DrawQuestion>(wrong[1].what).support = falling;
  std::get<DrawQuestion>(wrong[2].what).support = negative;
  wrong[3].vocab_size = kVocabulary + 1;
  wrong[4].what = TopQuestion{.count = kMaxTopLogits + 1};
  wrong[5].what = std::monostate();
  std::get<DrawQuestion>(wrong[6].what).moves.tokens = {{.token = kTokens}};
  // A penalty may make two logits equal in float32.
  wrong[7] = Moved(Draws(0.5));
  wrong[7].temperature = 0;
  std::vector<const RowQuestion*> questions;
  for (const RowQuestion& question : wrong) questions.push_back(&question);
  const auto rows = Bring(questions);
  for (size_t i = 0; i < rows.size(); ++i) ExpectWhole(rows[i], i);
}

}  // namespace
}  // namespace outrider
