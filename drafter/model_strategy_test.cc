// SPDX-License-Identifier: Apache-2.0
#include "drafter/model_strategy.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/sampling/coins.h"
#include "core/sampling/cut.h"
#include "core/sampling/draft_confidence.h"
#include "core/sampling/process.h"
#include "core/testing/answer_on_host.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::AnswerOnHost;
using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatEq;
using ::testing::IsEmpty;

constexpr int kNumWords = 8;
constexpr int kHeadSize = 10;  // the head is padded by two rows

// Depends on the length and on the last token; the padding is the likeliest.
std::vector<float> Row(absl::Span<const TokenId> context) {
  std::vector<float> row(kHeadSize, 50.0f);
  for (int v = 0; v < kNumWords; ++v) {
    row[v] = static_cast<float>((v * 5 + context.size() + context.back()) % 7);
  }
  return row;
}

class ModelStrategyTest : public ::testing::Test {
 protected:
  // The whole draft, over the table that Row is.
  absl::StatusOr<Draft> Propose(const DraftContext& context) {
    const auto drafting = strategy_.Begin(context, context.committed.size());
    num_rows_ = 0;
    bool goes_on = true;
    while (goes_on) {
      TokenSeq text = {context.committed.begin(), context.committed.end()};
      const TokenSeq& drafts = drafting->draft().tokens;
      text.insert(text.end(), drafts.begin(), drafts.end());
      num_rows_ += drafting->num_rows();
      auto next = drafting->Take(RowOf(drafting->question(), text));
      if (!next.ok()) return next.status();
      goes_on = *next;
    }
    return drafting->draft();
  }

  // What the model answers after `text`, where it answers, or the row itself.
  LogitRows RowOf(const RowQuestion& question, const TokenSeq& text) {
    LogitRows row = LogitRows::FromVector(Row(text), kHeadSize);
    if (!is_answering_ || question.vocab_size == 0) return row;
    auto answer = AnswerOnHost(question, row.Row(0));
    if (!answer.has_value()) return row;
    ++num_answered_;
    return LogitRows({{.answer = std::move(answer)}}, kHeadSize);
  }

  DraftContext Context(int k) {
    return {.committed = committed_,
            .max_draft_tokens = k,
            .options = {.support_size = 3},
            .sampling = {.temperature = 0.9, .top_k = 5},
            .step = 17,
            .random = &coins_};
  }

  TokenSeq committed_ = {4, 2, 6};
  Coins coins_{99};
  const ModelStrategy strategy_{kNumWords};
  int num_rows_ = 0;  // of the last draft
  bool is_answering_ = false;
  int num_answered_ = 0;
};

TEST_F(ModelStrategyTest, AnsweredRowsGiveTheDraftThatWholeRowsGive) {
  std::vector<DraftContext> contexts(10, Context(4));
  contexts[1].options = {.support_size = 5, .support_mass = 0.8};
  contexts[2].sampling = {.temperature = 0};
  contexts[3].sampling = {.top_p = 0.7};
  contexts[3].options.support_mass = 0.9;
  contexts[4].sampling = {.top_k = 4, .min_p = 0.2};
  contexts[5].rule = RuleKind::kCoupled;
  contexts[6].options.min_draft_probability = 0.5;
  contexts[7].options.min_draft_probability = 0.2;
  contexts[8].sampling = {.repetition_penalty = 1.6, .frequency_penalty = 0.7};
  contexts[8].prompt_length = 1;
  contexts[9].sampling = {.presence_penalty = 0.9, .logit_bias = {{3, 2.5}}};
  contexts[9].options.min_draft_probability = 0.2;
  int num_drafts = 0;
  for (const DraftContext& context : contexts) {
    is_answering_ = false;
    const auto whole = Propose(context);
    is_answering_ = true;
    const auto answered = Propose(context);
    ASSERT_THAT(whole, IsOk());
    ASSERT_THAT(answered, IsOk());
    EXPECT_EQ(answered->tokens, whole->tokens);
    num_drafts += answered->length();
    for (size_t i = 0; i < whole->distributions.size(); ++i) {
      const Distribution& q = whole->distributions[i];
      EXPECT_EQ(answered->distributions[i].support(), q.support());
      EXPECT_EQ(answered->distributions[i].weights(), q.weights());
    }
  }
  EXPECT_EQ(num_answered_, num_drafts);
  EXPECT_LT(num_drafts, 40);  // three of them may end early
}

TEST_F(ModelStrategyTest, AModelThatAnswersNothingIsNotAsked) {
  is_answering_ = true;
  DraftContext context = Context(3);
  context.model_answers = false;
  ASSERT_THAT(Propose(context), IsOk());
  EXPECT_EQ(num_answered_, 0);
}

TEST_F(ModelStrategyTest, DrawsEachTokenFromTheRowItReturns) {
  const auto proposal = Propose(Context(4));
  ASSERT_THAT(proposal, IsOk());
  const Draft& draft = *proposal;
  ASSERT_EQ(draft.length(), 4);
  EXPECT_EQ(draft.start, 3u);
  TokenSeq context = committed_;
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> logits = Row(context);
    const auto row = Process(absl::MakeConstSpan(logits).first(kNumWords),
                             {.temperature = 0.9, .top_k = 5}, {});
    const Distribution expected = KeepTop(*row, 3).RoundedToBFloat16();
    const Distribution& q = draft.distributions[i];
    EXPECT_THAT(q.support(), ElementsAreArray(expected.support()));
    EXPECT_THAT(q.weights(), ElementsAreArray(expected.weights()));
    // The coin of its position and of the request's step.
    const CoinKey coin = {Purpose::kDraft, draft.start + i, 17};
    EXPECT_EQ(draft.tokens[i],
              q.support()[coins_.Categorical(coin, q.weights())]);
    context.push_back(draft.tokens[i]);
  }
}

TEST_F(ModelStrategyTest, EachRowIsPenalisedForThePromptAndTheDraftsBeforeIt) {
  DraftContext request = Context(4);
  request.prompt_length = 2;
  request.sampling.repetition_penalty = 1.5;
  request.sampling.frequency_penalty = 0.7;
  const auto proposal = Propose(request);
  ASSERT_THAT(proposal, IsOk());
  const Draft& draft = *proposal;
  ASSERT_EQ(draft.length(), 4);
  TokenSeq context = committed_;
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> logits = Row(context);
    const auto row =
        Process(absl::MakeConstSpan(logits).first(kNumWords), request.sampling,
                {.committed = context, .prompt_length = 2});
    EXPECT_THAT(draft.distributions[i].support(),
                ElementsAreArray(KeepTop(*row, 3).support()));
    context.push_back(draft.tokens[i]);
  }
}

TEST_F(ModelStrategyTest, TheLastDraftIsNotRunForARow) {
  ASSERT_THAT(Propose(Context(3)), IsOk());
  EXPECT_EQ(num_rows_, 3);
}

TEST_F(ModelStrategyTest, StopsAfterTheDraftThatMakesTheBlockUnlikely) {
  const auto all = Propose(Context(4));
  ASSERT_THAT(all, IsOk());
  // What the model gives its first choices, one after the other.
  TokenSeq text = committed_;
  std::vector<double> confidences;
  for (int i = 0; i < 2; ++i) {
    const std::vector<float> logits = Row(text);
    confidences.push_back(
        TopProbability(absl::MakeConstSpan(logits).first(kNumWords)));
    text.push_back(all->tokens[i]);
  }
  DraftContext context = Context(4);
  context.options.min_draft_probability =
      confidences[0] * confidences[1] * 1.0001;
  const auto some = Propose(context);
  ASSERT_THAT(some, IsOk());
  // The same tokens, and the one that was unlikely already is kept.
  EXPECT_THAT(some->tokens,
              ElementsAreArray(absl::MakeConstSpan(all->tokens).first(2)));
  EXPECT_EQ(num_rows_, 2);
  // It says how sure it was where that counts.
  EXPECT_THAT(all->confidences, IsEmpty());
  EXPECT_THAT(some->confidences,
              ElementsAre(FloatEq(static_cast<float>(confidences[0])),
                          FloatEq(static_cast<float>(confidences[1]))));
}

TEST_F(ModelStrategyTest, NoDraftsNeedNoRows) {
  const auto proposal = Propose(Context(0));
  ASSERT_THAT(proposal, IsOk());
  EXPECT_EQ(proposal->length(), 0);
  EXPECT_EQ(proposal->start, 3u);
  EXPECT_EQ(num_rows_, 0);
}

TEST_F(ModelStrategyTest, NeverDraftsFromTheHeadsPadding) {
  DraftContext context = Context(8);
  context.sampling = {.temperature = 0};
  const auto proposal = Propose(context);
  ASSERT_THAT(proposal, IsOk());
  for (const TokenId token : proposal->tokens) {
    EXPECT_LT(token, kNumWords);
  }
}

TEST_F(ModelStrategyTest, ARowThatIsNotANumberFailsTheDraft) {
  const DraftContext context = Context(1);
  const auto drafting = strategy_.Begin(context, committed_.size());
  EXPECT_THAT(drafting->Take(LogitRows::FromVector(
                  std::vector<float>(kHeadSize,
                                     std::numeric_limits<float>::quiet_NaN()),
                  kHeadSize)),
              StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace outrider
