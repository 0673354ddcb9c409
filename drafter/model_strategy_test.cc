// SPDX-License-Identifier: Apache-2.0
#include "drafter/model_strategy.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/sampling/coins.h"
#include "core/sampling/cut.h"
#include "core/sampling/draft_confidence.h"
#include "core/sampling/process.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::outrider::testing::TableLm;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr int kVocabSize = 8;
constexpr int kHeadSize = 10;  // the head is padded by two rows
const SessionId kSession = {.bytes = {1}};

// Depends on the length and on the last token; the padding is the likeliest.
std::vector<float> Row(absl::Span<const TokenId> context) {
  std::vector<float> row(kHeadSize, 50.0f);
  for (int v = 0; v < kVocabSize; ++v) {
    row[v] = static_cast<float>((v * 5 + context.size() + context.back()) % 7);
  }
  return row;
}

class ModelStrategyTest : public ::testing::Test {
 protected:
  ModelStrategyTest() {
    auto model = std::make_unique<TableLm>(TableLm::Options{
        .table = Row, .vocab_size = kHeadSize, .context_length = 16});
    model_ = model.get();
    strategy_ = std::make_unique<ModelStrategy>(std::move(model), kVocabSize);
  }

  DraftContext Context(int k) {
    return {.session = kSession,
            .committed = committed_,
            .keep_length = 0,
            .max_draft_tokens = k,
            .options = {.support_size = 3},
            .sampling = {.temperature = 0.9, .top_k = 5},
            .step = 17,
            .random = &coins_};
  }

  TokenSeq committed_ = {4, 2, 6};
  Coins coins_{99};
  const TableLm* model_;
  std::unique_ptr<ModelStrategy> strategy_;
};

TEST_F(ModelStrategyTest, DrawsEachTokenFromTheRowItReturns) {
  const auto proposal = strategy_->Propose(Context(4));
  ASSERT_THAT(proposal, IsOk());
  const Draft& draft = proposal->draft;
  ASSERT_EQ(draft.length(), 4);
  EXPECT_EQ(draft.start, 3u);
  TokenSeq context = committed_;
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> logits = Row(context);
    const auto row = Process(absl::MakeConstSpan(logits).first(kVocabSize),
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
  const auto proposal = strategy_->Propose(request);
  ASSERT_THAT(proposal, IsOk());
  const Draft& draft = proposal->draft;
  ASSERT_EQ(draft.length(), 4);
  TokenSeq context = committed_;
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> logits = Row(context);
    const auto row =
        Process(absl::MakeConstSpan(logits).first(kVocabSize), request.sampling,
                {.committed = context, .prompt_length = 2});
    EXPECT_THAT(draft.distributions[i].support(),
                ElementsAreArray(KeepTop(*row, 3).support()));
    context.push_back(draft.tokens[i]);
  }
}

TEST_F(ModelStrategyTest, TheLastDraftHasNoEntryInTheCache) {
  const auto proposal = strategy_->Propose(Context(3));
  ASSERT_THAT(proposal, IsOk());
  EXPECT_EQ(proposal->num_cached_drafts, 2);
  TokenSeq expected = committed_;
  expected.insert(expected.end(), proposal->draft.tokens.begin(),
                  proposal->draft.tokens.begin() + 2);
  EXPECT_EQ(model_->Cache(kSession), expected);
  EXPECT_EQ(model_->num_tokens_run(), 5);
}

TEST_F(ModelStrategyTest, StopsBehindTheDraftThatMakesTheBlockUnlikely) {
  const auto all = strategy_->Propose(Context(4));
  ASSERT_THAT(all, IsOk());
  // What the model gives its first choices, one after the other.
  TokenSeq text = committed_;
  double first_two = 1;
  for (int i = 0; i < 2; ++i) {
    const std::vector<float> logits = Row(text);
    first_two *= TopProbability(absl::MakeConstSpan(logits).first(kVocabSize));
    text.push_back(all->draft.tokens[i]);
  }
  DraftContext context = Context(4);
  context.options.min_draft_probability = first_two * 1.0001;
  const auto some = strategy_->Propose(context);
  ASSERT_THAT(some, IsOk());
  // The same tokens, and the one that was unlikely already is kept.
  EXPECT_THAT(
      some->draft.tokens,
      ElementsAreArray(absl::MakeConstSpan(all->draft.tokens).first(2)));
  EXPECT_EQ(some->num_cached_drafts, 1);
}

TEST_F(ModelStrategyTest, NoDraftsOnlyFillTheCache) {
  const auto proposal = strategy_->Propose(Context(0));
  ASSERT_THAT(proposal, IsOk());
  EXPECT_EQ(proposal->draft.length(), 0);
  EXPECT_EQ(proposal->num_cached_drafts, 0);
  EXPECT_EQ(model_->Cache(kSession), committed_);
}

TEST_F(ModelStrategyTest, RunsOnlyWhatTheCacheLacks) {
  ASSERT_THAT(strategy_->Propose(Context(0)), IsOk());
  committed_ = {4, 2, 6, 1};
  DraftContext context = Context(2);
  context.keep_length = 3;
  ASSERT_THAT(strategy_->Propose(context), IsOk());
  EXPECT_EQ(model_->num_tokens_run(), 3 + 2);
}

TEST_F(ModelStrategyTest, NeverDraftsFromTheHeadsPadding) {
  DraftContext context = Context(8);
  context.sampling = {.temperature = 0};
  const auto proposal = strategy_->Propose(context);
  ASSERT_THAT(proposal, IsOk());
  for (const TokenId token : proposal->draft.tokens) {
    EXPECT_LT(token, kVocabSize);
  }
}

TEST_F(ModelStrategyTest, TheModelsErrorIsItsOwn) {
  EXPECT_THAT(strategy_->Propose(Context(15)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ModelStrategy broken(std::make_unique<TableLm>(TableLm::Options{
                           .table =
                               [](auto) {
                                 return std::vector<float>(
                                     kVocabSize,
                                     std::numeric_limits<float>::quiet_NaN());
                               },
                           .vocab_size = kVocabSize}),
                       kVocabSize);
  EXPECT_THAT(broken.Propose(Context(1)),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(ModelStrategyTest, ReleaseGivesTheCacheBack) {
  ASSERT_THAT(strategy_->Propose(Context(2)), IsOk());
  strategy_->Release(kSession);
  EXPECT_EQ(model_->num_sessions(), 0);
}

}  // namespace
}  // namespace outrider
