// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/sampling_params.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/testing/special_values.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::kInfinity;
using ::outrider::testing::kNan;
using ::outrider::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

// One parameter, the ends of its range, and what lies just outside.
struct Boundary {
  std::string name;
  double SamplingParams::*field;
  double lowest;
  double highest;
};

const Boundary kBoundaries[] = {
    {"temperature", &SamplingParams::temperature, 0, 10},
    {"top_p", &SamplingParams::top_p, 5e-324, 1},
    {"min_p", &SamplingParams::min_p, 0, 1},
    {"repetition_penalty", &SamplingParams::repetition_penalty, 0.01, 100},
    {"presence_penalty", &SamplingParams::presence_penalty, -2, 2},
    {"frequency_penalty", &SamplingParams::frequency_penalty, -2, 2},
    {"lossy_lenience", &SamplingParams::lossy_lenience, 5e-324, 1},
};

TEST(SamplingParamsTest, EveryRangeEndsWhereItSays) {
  for (const Boundary& boundary : kBoundaries) {
    SCOPED_TRACE(boundary.name);
    for (const double good : {boundary.lowest, boundary.highest}) {
      SamplingParams params;
      params.*boundary.field = good;
      EXPECT_THAT(Validate(params), IsOk());
    }
    for (const double bad :
         {std::nextafter(boundary.lowest, -kInfinity),
          std::nextafter(boundary.highest, kInfinity), double{kNan},
          double{kInfinity}, -double{kInfinity}}) {
      SamplingParams params;
      params.*boundary.field = bad;
      EXPECT_THAT(Validate(params),
                  StatusIs(kRefused, AllOf(HasSubstr(boundary.name),
                                           HasSubstr(", not "))));
    }
  }
}

TEST(SamplingParamsTest, ARepetitionPenaltyOf0IsRefusedAndToldWhatOffIs) {
  EXPECT_THAT(
      Validate({.repetition_penalty = 0}),
      StatusIs(kRefused, AllOf(HasSubstr("1 is off"), HasSubstr("not 0"))));
}

TEST(SamplingParamsTest, TopKIsAnyCountFrom0On) {
  EXPECT_THAT(Validate({.top_k = -1}), StatusIs(kRefused, HasSubstr("top_k")));
  EXPECT_THAT(Validate({.top_k = 0}), IsOk());
  EXPECT_THAT(Validate({.top_k = std::numeric_limits<int>::max()}), IsOk());
}

TEST(SamplingParamsTest, ABiasIsBetweenMinus100And100) {
  for (const double good : {-100.0, 0.0, 100.0}) {
    EXPECT_THAT(Validate({.logit_bias = {{7, good}}}), IsOk());
  }
  for (const double bad :
       {-100.1, 100.1, double{kNan}, double{kInfinity}, -double{kInfinity}}) {
    EXPECT_THAT(Validate({.logit_bias = {{7, bad}}}),
                StatusIs(kRefused, HasSubstr("token 7")));
  }
}

TEST(SamplingParamsTest, BiasesAscendWithoutDuplicatesAndHaveALimit) {
  EXPECT_THAT(Validate({.logit_bias = {{1, 1}, {1, 2}}}),
              StatusIs(kRefused, HasSubstr("token 1 twice")));
  EXPECT_THAT(Validate({.logit_bias = {{2, 1}, {1, 2}}}),
              StatusIs(kRefused, HasSubstr("ascend")));
  SamplingParams params;
  for (int i = 0; i < 1024; ++i) params.logit_bias.push_back({i, 1});
  EXPECT_THAT(Validate(params), IsOk());
  params.logit_bias.push_back({1024, 1});
  EXPECT_THAT(Validate(params),
              StatusIs(kRefused, AllOf(HasSubstr("1024"), HasSubstr("1025"))));
}

TEST(SamplingParamsTest, BiasedTokensAreOfTheVocabulary) {
  EXPECT_THAT(Validate({.logit_bias = {{0, 1}, {9, 1}}}, 10), IsOk());
  EXPECT_THAT(Validate({.logit_bias = {{10, 1}}}, 10),
              StatusIs(kRefused, HasSubstr("token id 10 is outside [0, 10)")));
  EXPECT_THAT(Validate({.logit_bias = {{-1, 1}}}, 10),
              StatusIs(kRefused, HasSubstr("token id 4294967295")));
  EXPECT_THAT(Validate({.temperature = -1}, 10), StatusIs(kRefused));
}

TEST(SamplingParamsTest, TheIdOfABiasIsReportedAsItWasSent) {
  const TokenId last = -1;  // sent as 2^32 - 1
  for (const std::vector<LogitBias>& biases :
       std::vector<std::vector<LogitBias>>{{{last, 1}},
                                           {{last, 101}},
                                           {{last, 1}, {last, 2}},
                                           {{5, 1}, {last, 1}}}) {
    const auto is_reported =
        StatusIs(kRefused, HasSubstr("token id 4294967295 is outside"));
    EXPECT_THAT(Validate({.logit_bias = biases}), is_reported);
    EXPECT_THAT(Validate({.logit_bias = biases}, 10), is_reported);
  }
}

}  // namespace
}  // namespace outrider
