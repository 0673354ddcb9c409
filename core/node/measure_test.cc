// SPDX-License-Identifier: Apache-2.0
#include "core/node/measure.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/model/causal_lm.h"
#include "core/model/logit_rows.h"
#include "core/model/pending_pass.h"
#include "core/testing/answer_on_host.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::AnswerOnHost;
using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::outrider::testing::TableLm;
using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

const ModelMeasurement kMeasured = {.rows_seconds = {0.002, 0.003},
                                    .paused_seconds = 0.0025,
                                    .plain_tokens_per_second = 500,
                                    .plain_sampled_tokens_per_second = 400};

// A model whose passes take longer where the one before is a while ago.
TEST(MeasureTest, APassAfterAPauseIsTimedByItself) {
  Clock::time_point last = Clock::now();
  TableLm model({.table =
                     [&last](absl::Span<const TokenId>) {
                       if (Clock::now() - last > milliseconds(1)) {
                         std::this_thread::sleep_for(milliseconds(5));
                       }
                       last = Clock::now();
                       return std::vector<float>{0, 1, 0};
                     },
                 .vocab_size = 3});
  const auto measured = MeasureModel(model, {.vocab_size = 3,
                                             .context_length = 8,
                                             .max_rows = 3,
                                             .num_repeats = 5,
                                             .num_decoded = 4});
  ASSERT_THAT(measured, IsOk());
  EXPECT_THAT(measured->rows_seconds, SizeIs(3));
  EXPECT_THAT(measured->rows_seconds, Each(Gt(0)));
  EXPECT_GE(measured->paused_seconds, 0.005);
  EXPECT_GT(measured->plain_tokens_per_second, 0);
  EXPECT_GT(measured->plain_sampled_tokens_per_second, 0);
  EXPECT_FALSE(measured->rows_depend_on_count);
}

// A model whose rows have one number where they are alone in a pass, and
// another one beside others.
class ChangingLm final : public CausalLm {
 public:
  ChangingLm(float alone, float together)
      : alone_(alone), together_(together) {}

  const ModelInfo& info() const override { return model_.info(); }
  int64_t AvailableKvBytes() const override { return 0; }
  absl::Status AllocateKvBlocks(int) override { return absl::OkStatus(); }
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override {
    PassResults results;
    for (const Extension& extension : batch) {
      std::vector<float> values;
      for (int i = 0; i < extension.num_rows; ++i) {
        values.insert(values.end(),
                      {2, extension.num_rows > 1 ? together_ : alone_});
      }
      results.emplace_back(LogitRows::FromVector(std::move(values), 2));
    }
    return std::make_unique<PassThatRan>(std::move(results));
  }

 private:
  const TableLm model_{
      {.table = [](auto) { return std::vector<float>(2); }, .vocab_size = 2}};
  const float alone_;
  const float together_;
};

TEST(MeasureTest, ANameThatIsNotUtf8IsWrittenAsJsonToo) {
  EXPECT_THAT(ToJson({}, {.name = "a\xff"}),
              ::testing::HasSubstr("\"model\":\"a\xef\xbf\xbd\""));
}

TEST(MeasureTest, ARowThatChangesInAnyBitDependsOnTheOthers) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto measure = [](float alone, float together) {
    ChangingLm model(alone, together);
    const auto measured = MeasureModel(model, {.vocab_size = 2,
                                               .context_length = 8,
                                               .max_rows = 3,
                                               .num_repeats = 1,
                                               .num_decoded = 4});
    EXPECT_THAT(measured, IsOk());
    return *measured;
  };
  EXPECT_FALSE(measure(1, 1).rows_depend_on_count);
  EXPECT_FALSE(measure(-kInfinity, -kInfinity).rows_depend_on_count);
  const ModelMeasurement other = measure(1, 1.5);
  EXPECT_TRUE(other.rows_depend_on_count);
  EXPECT_EQ(other.max_logit_difference, 0.5);
  EXPECT_TRUE(measure(0, -0.0f).rows_depend_on_count);
  for (const float together : {kNaN, -kInfinity}) {
    const ModelMeasurement none = measure(1, together);
    EXPECT_TRUE(none.rows_depend_on_count);
    EXPECT_EQ(none.max_logit_difference, double{kInfinity});
  }
}

TEST(MeasureTest, AContextThatIsTooShortIsToldWithTheLeast) {
  const auto measure = [](int context_length) {
    TableLm model({.table = [](auto) { return std::vector<float>(3); },
                   .vocab_size = 3,
                   .context_length = context_length});
    return MeasureModel(model, {.vocab_size = 3, .num_repeats = 1}).status();
  };
  for (const int too_short : {1, 4, 9}) {
    EXPECT_THAT(measure(too_short),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("at least 10 are needed")));
  }
  EXPECT_THAT(measure(10), IsOk());
}

TEST(MeasureTest, RowsAreAskedAboutAsThoseOfADraftAre) {
  constexpr int kVocabSize = 100;
  std::vector<size_t> supports;
  TableLm model(
      {.table =
           [](absl::Span<const TokenId>) {
             return std::vector<float>(kVocabSize);
           },
       .vocab_size = kVocabSize,
       .answer =
           [&](const RowQuestion& question, absl::Span<const float> logits) {
             const auto& draw = std::get<DrawQuestion>(question.what);
             EXPECT_TRUE(std::is_sorted(draw.support.begin(),
                                        draw.support.end(),
                                        std::less_equal<>()));
             supports.push_back(draw.support.size());
             return AnswerOnHost(question, logits);
           }});
  ASSERT_THAT(MeasureModel(model, {.vocab_size = kVocabSize,
                                   .context_length = 8,
                                   .max_rows = 3,
                                   .num_repeats = 1,
                                   .num_decoded = 4}),
              IsOk());
  // Passes of one, two and three rows, whose last is after all drafts.
  supports.resize(6);
  EXPECT_THAT(supports, ElementsAre(0, 32, 0, 32, 32, 0));
}

TEST(MeasureTest, PeopleReadATable) {
  const std::string text =
      ToText(kMeasured, {.name = "target", .numerics = "avx2"});
  EXPECT_THAT(text, HasSubstr(", kernels avx2\n"));
  EXPECT_THAT(text, HasSubstr("   2    3.000 ms   1.50\n"));
  EXPECT_THAT(text,
              HasSubstr("   1    2.500 ms   1.25  after a pause of 1 ms"));
  EXPECT_THAT(text, HasSubstr("500.0 tokens/s, 400.0 at temperature 1\n"));
}

TEST(MeasureTest, ProgramsReadJson) {
  const auto json = nlohmann::json::parse(
      ToJson(kMeasured, {.name = "target", .numerics = "avx2"}));
  EXPECT_EQ(json["kernels"], "avx2");
  EXPECT_EQ(json["model"], "target");
  EXPECT_EQ(json["rows_ms"], nlohmann::json({2.0, 3.0}));
  EXPECT_EQ(json["paused_row_ms"], 2.5);
  EXPECT_EQ(json["plain_sampled_tokens_per_second"], 400);
}

TEST(MeasureTest, TheMiddleOfAnEvenNumberIsTheLowerOne) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2);
}

}  // namespace
}  // namespace outrider
