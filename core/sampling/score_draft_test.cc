// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/score_draft.h"

#include <cmath>
#include <vector>

#include "core/sampling/coins.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

// Probabilities .1 .4 .2 .3.
const std::vector<float> kLogits = {
    static_cast<float>(std::log(0.1)), static_cast<float>(std::log(0.4)),
    static_cast<float>(std::log(0.2)), static_cast<float>(std::log(0.3))};

TEST(ScoreDraftTest, ADraftIsJudgedByLenienceBeforeItIsPenalisedItself) {
  Coins coins(/*seed=*/1);
  const SamplingParams params = {
      .temperature = 0, .presence_penalty = 2, .lossy_lenience = 0.7};
  const Draft draft = Draft::OneHot(/*start=*/5, {3, 3});
  const std::vector<RowView> rows(3, RowView{kLogits});
  const auto target =
      ScoreDraft(rows, DraftBlock::Of(draft, {}), params, coins);
  ASSERT_THAT(target, IsOk());
  // The first 3 has three quarters of the highest probability; the second is
  // one that was generated before.
  EXPECT_EQ((*target)[0](3), 1);
  EXPECT_EQ((*target)[1](3), 0);
  EXPECT_EQ((*target)[1].drawn_token(), 1);
}

TEST(ScoreDraftTest, AnAnswerThatIsNoneIsNotWhatTheCallerGotWrong) {
  const Draft draft = {
      .start = 5,
      .tokens = {1},
      .distributions = {Distribution::FromSorted({1, 3}, {0.5, 0.5})}};
  const DrawAnswer good = {
      .support_weights = {0.5, 0.25}, .tail = 0.25, .drawn = 2};
  const DrawAnswer last = {.tail = 1, .drawn = 2};
  const std::vector<DrawAnswer> wrong = {
      {.support_weights = {0.5}, .tail = 0.5, .drawn = 2},
      {.support_weights = {0.5, 0.25}, .tail = 0.25},
      {.support_weights = {0.5, 0.25}, .tail = 0.25, .drawn = 3},
      {.support_weights = {0.5, 0.5}, .tail = 0, .drawn = 2},
      {.support_weights = {0.5, std::nan("")}, .tail = 0.25, .drawn = 2},
      {.support_weights = {0, 0}, .tail = 0}};
  Coins coins(/*seed=*/1);
  const auto score = [&](const DrawAnswer& first, RuleKind rule) {
    const std::vector<RowAnswer> answers = {first, last};
    const std::vector<RowView> rows = {{.answer = &answers[0]},
                                       {.answer = &answers[1]}};
    return ScoreDraft(rows, DraftBlock::Of(draft, {}, rule), {}, coins)
        .status();
  };
  EXPECT_THAT(score(good, RuleKind::kRejection), IsOk());
  for (const DrawAnswer& answer : wrong) {
    EXPECT_THAT(
        score(answer, RuleKind::kRejection),
        StatusIs(absl::StatusCode::kInternal, HasSubstr("an answered row")));
  }
  EXPECT_THAT(score(good, RuleKind::kCoupled), IsOk());
  EXPECT_THAT(score({.tail = 1}, RuleKind::kCoupled),
              StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace outrider
