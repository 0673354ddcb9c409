// SPDX-License-Identifier: Apache-2.0
#include "drafter/measure_draft.h"

#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/base/top_question.h"
#include "core/sampling/draft_options.h"
#include "core/testing/answer_on_host.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "drafter/model_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::AnswerOnHost;
using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::outrider::testing::TableLm;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What a model with so many tokens is asked while its steps are timed, at
// temperature 0 and above it.
struct Asked {
  std::vector<TopQuestion> greedy = {};
  std::vector<TopQuestion> sampled = {};
};

Asked WhatIsAsked(int vocab_size) {
  Asked asked;
  TableLm model(
      {.table =
           [=](absl::Span<const TokenId> context) {
             std::vector<float> logits(vocab_size);
             logits[context.size() % logits.size()] = 20;
             return logits;
           },
       .vocab_size = vocab_size,
       .answer =
           [&](const RowQuestion& question, absl::Span<const float> logits) {
             (question.temperature == 0 ? asked.greedy : asked.sampled)
                 .push_back(std::get<TopQuestion>(question.what));
             return AnswerOnHost(question, logits);
           }});
  const auto times =
      MeasureDraftStep(ModelStrategy(vocab_size), model, vocab_size);
  EXPECT_THAT(times, IsOk());
  EXPECT_GT(times->greedy, 0);
  EXPECT_GT(times->sampled, 0);
  EXPECT_THAT(asked.greedy, Not(IsEmpty()));
  EXPECT_THAT(asked.sampled, Not(IsEmpty()));
  return asked;
}

TEST(MeasureDraftTest, TheStepThatIsTimedAsksWhatAGenerationsDraftAsks) {
  const Asked asked = WhatIsAsked(2 * kMaxTopLogits);
  for (const TopQuestion& top : asked.greedy) EXPECT_EQ(top.count, 1);
  for (const TopQuestion& top : asked.sampled) {
    EXPECT_EQ(top.count, kMaxTopLogits);
    ASSERT_TRUE(top.next.has_value());
    EXPECT_EQ(top.next->top_k, 0);
    EXPECT_EQ(top.next->top_p, kGenerationDraftOptions.support_mass);
    EXPECT_EQ(top.next->support_size, kGenerationDraftOptions.support_size);
    EXPECT_TRUE(top.next->round_weights);
  }
}

TEST(MeasureDraftTest, AContextThatIsTooShortIsToldWithTheLeast) {
  const auto measure = [](int context_length) {
    TableLm model({.table = [](auto) { return std::vector<float>(3); },
                   .vocab_size = 3,
                   .context_length = context_length});
    return MeasureDraftStep(ModelStrategy(3), model, 3).status();
  };
  for (const int too_short : {1, 4}) {
    EXPECT_THAT(measure(too_short),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("at least 5 are needed")));
  }
  EXPECT_THAT(measure(5), IsOk());
}

TEST(MeasureDraftTest, ASmallVocabularyBoundsItsRows) {
  for (const TopQuestion& top : WhatIsAsked(9).sampled) {
    ASSERT_TRUE(top.next.has_value());
    EXPECT_EQ(top.next->support_size, 9);
  }
}

}  // namespace
}  // namespace outrider
