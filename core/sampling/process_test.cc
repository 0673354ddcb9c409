// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/process.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/testing/special_values.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::kInfinity;
using ::outrider::testing::kNan;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Distribution MustProcess(const std::vector<float>& logits,
                         const SamplingParams& params) {
  const auto row = Process(logits, params, {});
  EXPECT_TRUE(row.ok()) << row.status();
  return row.ok() ? *row : Distribution::OneHot(0);
}

// Logits whose softmax at temperature 1 is these probabilities.
std::vector<float> LogitsOf(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) {
    logits.push_back(static_cast<float>(std::log(p)));
  }
  return logits;
}

TEST(ProcessTest, IsTheSoftmaxAtTemperatureOne) {
  const Distribution row = MustProcess(LogitsOf({0.1, 0.6, 0.3}), {});
  EXPECT_NEAR(row(0), 0.1, 1e-7);
  EXPECT_NEAR(row(1), 0.6, 1e-7);
  EXPECT_NEAR(row(2), 0.3, 1e-7);
}

TEST(ProcessTest, DividesLogitsByTheTemperature) {
  const Distribution row = MustProcess({1, 2}, {.temperature = 0.5});
  EXPECT_NEAR(row(1), 1 / (1 + std::exp(-2.0)), 1e-15);
}

TEST(ProcessTest, TemperatureZeroIsTheLowestIdAmongTheLargest) {
  for (const double temperature : {0.0, 0.99e-4}) {
    const Distribution row =
        MustProcess({1, 3, 3, 2}, {.temperature = temperature, .top_k = 3});
    EXPECT_THAT(row.support(), ElementsAre(1));
  }
  // This is the lowest that counts as a temperature.
  EXPECT_THAT(MustProcess({1, 3, 3, 2}, {.temperature = 1e-4}).support(),
              ElementsAre(1, 2));
}

TEST(ProcessTest, TopKKeepsExactlyKAndTiesGoToTheLowestIds) {
  const std::vector<float> logits = {2, 5, 2, 2, 7};
  EXPECT_THAT(MustProcess(logits, {.top_k = 1}).support(), ElementsAre(4));
  EXPECT_THAT(MustProcess(logits, {.top_k = 3}).support(),
              ElementsAre(0, 1, 4));
  EXPECT_THAT(MustProcess(logits, {.top_k = 4}).support(),
              ElementsAre(0, 1, 2, 4));
  for (const int off : {0, 5, 6, 1 << 30}) {
    EXPECT_EQ(MustProcess(logits, {.top_k = off}).support().size(), 5u);
  }
}

TEST(ProcessTest, TheTokenThatCrossesTopPStays) {
  const std::vector<float> logits = LogitsOf({0.2, 0.5, 0.3});
  EXPECT_THAT(MustProcess(logits, {.top_p = 0.4}).support(), ElementsAre(1));
  EXPECT_THAT(MustProcess(logits, {.top_p = 0.6}).support(), ElementsAre(1, 2));
  EXPECT_THAT(MustProcess(logits, {.top_p = 0.9}).support(),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(MustProcess(logits, {.top_p = 1e-300}).support(), ElementsAre(1));
}

TEST(ProcessTest, AMassThatMeetsTopPExactlyIsEnough) {
  // Equal logits: every sum of weights is a whole number.
  const std::vector<float> logits(4, 1.5f);
  EXPECT_THAT(MustProcess(logits, {.top_p = 0.25}).support(), ElementsAre(0));
  EXPECT_THAT(MustProcess(logits, {.top_p = 0.5}).support(), ElementsAre(0, 1));
  EXPECT_THAT(MustProcess(logits, {.top_p = std::nextafter(0.5, 1)}).support(),
              ElementsAre(0, 1, 2));
}

TEST(ProcessTest, TopPCountsTheMassAfterTopK) {
  const std::vector<float> logits = LogitsOf({0.4, 0.3, 0.2, 0.1});
  // Of the two that top-k leaves the first has 4/7, more than half.
  EXPECT_THAT(MustProcess(logits, {.top_k = 2, .top_p = 0.5}).support(),
              ElementsAre(0));
}

TEST(ProcessTest, MaskedTokensAreImpossibleAndCountForNothing) {
  const std::vector<float> logits = {-kInfinity, 1, -kInfinity, 1, 1};
  EXPECT_THAT(MustProcess(logits, {}).support(), ElementsAre(1, 3, 4));
  EXPECT_THAT(MustProcess(logits, {.top_k = 2}).support(), ElementsAre(1, 3));
  EXPECT_THAT(MustProcess(logits, {.temperature = 0}).support(),
              ElementsAre(1));
}

TEST(ProcessTest, ExtremeLogitsNeitherOverflowNorLeaveANegativeWeight) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const Distribution row =
      MustProcess({kLargest, -kLargest, kLargest}, {.temperature = 10});
  EXPECT_EQ(row(0), 0.5);
  EXPECT_EQ(row(1), 0.0);
  // What underflows leaves the support: a listed weight is positive.
  EXPECT_THAT(row.support(), ElementsAre(0, 2));
}

TEST(ProcessTest, ARowThatIsNoRowFailsTheSession) {
  constexpr auto kInternal = absl::StatusCode::kInternal;
  for (const double temperature : {0.0, 1.0}) {
    const SamplingParams params = {.temperature = temperature};
    EXPECT_THAT(Process(std::vector<float>{1, kNan, 2}, params, {}),
                StatusIs(kInternal, HasSubstr("token 1")));
    EXPECT_THAT(Process(std::vector<float>{1, 2, kInfinity}, params, {}),
                StatusIs(kInternal, HasSubstr("token 2")));
    EXPECT_THAT(Process(std::vector<float>{-kInfinity, -kInfinity}, params, {}),
                StatusIs(kInternal, HasSubstr("masked every token")));
  }
}

TEST(ProcessTest, EverySettingGivesAProbabilityRow) {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal(0, 8);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<float> logits;
    for (int i = 0; i < 1 + trial % 50; ++i) logits.push_back(normal(bits));
    const SamplingParams params = {.temperature = 0.05 + 0.03 * trial,
                                   .top_k = trial % 7,
                                   .top_p = 1.0 - 0.003 * trial};
    const Distribution row = MustProcess(logits, params);
    double sum = 0;
    for (const TokenId v : row.support()) {
      EXPECT_GT(row(v), 0);
      sum += row(v);
    }
    EXPECT_NEAR(sum, 1, 1e-14);
  }
}

TEST(ProcessTest, MinPKeepsWhatIsNotFarBelowTheMostProbable) {
  const std::vector<float> logits = LogitsOf({0.1, 0.4, 0.2, 0.3});
  EXPECT_THAT(MustProcess(logits, {.min_p = 0.2}).support(),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(MustProcess(logits, {.min_p = 0.3}).support(),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(MustProcess(logits, {.min_p = 0.6}).support(), ElementsAre(1, 3));
  // A probability that meets the bound stays: ties with the first do at 1.
  EXPECT_THAT(MustProcess({1, 2, 2}, {.min_p = 1}).support(),
              ElementsAre(1, 2));
}

TEST(ProcessTest, MinPLooksAtProbabilitiesAfterTheTemperature) {
  // The second has e^-1 = 0.37 of the first at T = 1, e^-0.5 = 0.61 at T = 2.
  EXPECT_THAT(MustProcess({1, 2}, {.min_p = 0.5}).support(), ElementsAre(1));
  EXPECT_THAT(MustProcess({1, 2}, {.temperature = 2, .min_p = 0.5}).support(),
              ElementsAre(0, 1));
}

TEST(ProcessTest, TopPCountsTheMassAfterMinP) {
  const std::vector<float> logits = LogitsOf({0.4, 0.3, 0.2, 0.1});
  // Of the two that min-p leaves the first has 4/7, more than half.
  EXPECT_THAT(MustProcess(logits, {.top_p = 0.5, .min_p = 0.6}).support(),
              ElementsAre(0));
}

TEST(ProcessTest, MinPAndTopKKeepTheSameTokensInEitherOrder) {
  const std::vector<float> logits = LogitsOf({0.4, 0.3, 0.2, 0.1});
  EXPECT_THAT(MustProcess(logits, {.top_k = 2, .min_p = 0.4}).support(),
              ElementsAre(0, 1));
  EXPECT_THAT(MustProcess(logits, {.top_k = 3, .min_p = 0.6}).support(),
              ElementsAre(0, 1));
}

TEST(ProcessTest, BiasAndPenaltiesComeBeforeEveryCut) {
  const TokenSeq history = {1};
  const auto row =
      Process(std::vector<float>{3, 5, 4},
              {.top_k = 1, .repetition_penalty = 2}, {.committed = history});
  ASSERT_TRUE(row.ok());
  EXPECT_THAT(row->support(), ElementsAre(2));
  EXPECT_THAT(
      MustProcess({3, 5, 4}, {.top_k = 1, .logit_bias = {{0, 2.5}}}).support(),
      ElementsAre(0));
}

TEST(ProcessTest, AtTemperatureZeroTheArgmaxIsOfTheAdjustedRow) {
  const TokenSeq history = {1, 1};
  const SamplingParams params = {.temperature = 0, .frequency_penalty = 1};
  // 5 - 2 * 1 ties with 3: the lowest id wins.
  const auto row =
      Process(std::vector<float>{3, 5, 3}, params, {.committed = history});
  ASSERT_TRUE(row.ok());
  EXPECT_THAT(row->support(), ElementsAre(0));
  EXPECT_THAT(
      MustProcess({3, 5, 4}, {.temperature = 0, .logit_bias = {{1, -100}}})
          .support(),
      ElementsAre(2));
}

TEST(ProcessTest, ABadRowFailsAlsoWhereItIsAdjusted) {
  EXPECT_THAT(
      Process(std::vector<float>{1, kNan}, {.logit_bias = {{0, 1}}}, {}),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("token 1")));
}

TEST(ProcessTest, NoSettingInRangeLeavesTheRowWithoutAToken) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const TokenSeq history(1000, 0);
  for (const double repetition : {0.01, 1.0, 100.0}) {
    for (const double additive : {-2.0, 0.0, 2.0}) {
      for (const double bias : {-100.0, 100.0}) {
        const SamplingParams params = {.min_p = 1,
                                       .repetition_penalty = repetition,
                                       .presence_penalty = additive,
                                       .frequency_penalty = additive,
                                       .logit_bias = {{0, bias}}};
        const auto row =
            Process(std::vector<float>{kLargest, -kLargest, 0, -kInfinity},
                    params, {.committed = history});
        ASSERT_TRUE(row.ok()) << row.status();
        EXPECT_GE(row->support().size(), 1u);
        EXPECT_TRUE(std::isfinite(row->total()));
        EXPECT_EQ((*row)(3), 0) << "a mask stays a mask";
      }
    }
  }
}

TEST(FindArgmaxTest, TellsTiesByAGapOfZero) {
  EXPECT_EQ(FindArgmax(std::vector<float>{1, 4, 2}).argmax, 1);
  EXPECT_EQ(FindArgmax(std::vector<float>{1, 4, 2}).gap, 2);
  EXPECT_EQ(FindArgmax(std::vector<float>{4, 1, 4}).argmax, 0);
  EXPECT_EQ(FindArgmax(std::vector<float>{4, 1, 4}).gap, 0);
  EXPECT_EQ(FindArgmax(std::vector<float>{-kInfinity, -3}).argmax, 1);
  EXPECT_EQ(FindArgmax(std::vector<float>{5}).argmax, 0);
}

}  // namespace
}  // namespace outrider
