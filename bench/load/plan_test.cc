// SPDX-License-Identifier: Apache-2.0
#include "bench/load/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/load/formula.h"
#include "core/testing/status_matchers.h"

namespace outrider::bench {
namespace {

using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseNumbersTest, ReadsAListInItsOrder) {
  EXPECT_THAT(*ParseNumbers("--rtt", "0,50,1.5", 0, 100),
              ElementsAre(0, 50, 1.5));
}

TEST(ParseNumbersTest, RefusesWhatIsNoSuchListAndNamesTheFlag) {
  for (const char* list : {"", "1,", "a", "-1", "101", "nan", "1,1", "1;2"}) {
    const auto numbers = ParseNumbers("--rtt", list, 0, 100);
    EXPECT_THAT(numbers, StatusIs(absl::StatusCode::kInvalidArgument)) << list;
    EXPECT_THAT(std::string(numbers.status().message()), HasSubstr("--rtt"));
  }
  EXPECT_THAT(ParseWholeNumbers("--k", "1.5", 0, 8),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ParseDraftLengthsTest, KMayBeAutoOnceAndStandsLast) {
  EXPECT_THAT(*ParseDraftLengths("--k", "auto,2,0", 8),
              ElementsAre(2, 0, kAutoK));
  EXPECT_THAT(*ParseDraftLengths("--k", "auto", 8), ElementsAre(kAutoK));
  EXPECT_EQ(NameOfK(kAutoK), "auto");
  for (const char* list : {"auto,auto", "9,auto", "automatic", ""}) {
    EXPECT_THAT(ParseDraftLengths("--k", list, 8),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << list;
  }
  EXPECT_EQ(ParseDraftLengths("--k", "3,,4", 8).status().message(),
            "--k needs whole numbers from 0 to 8 or auto, such as "
            "\"0,4,auto\", not \"\"");
}

TEST(PlanPointsTest, KByControlIsNoLargestK) {
  EXPECT_EQ(Grid({.ks = {0, 3, kAutoK}}).LargestK(), 3);
  EXPECT_TRUE(Grid({.ks = {0, kAutoK}}).HasDrafts());
  EXPECT_FALSE(Grid({.ks = {0}}).HasDrafts());
}

TEST(PlanPointsTest, EveryRowBeginsWithPlainDecoding) {
  const std::vector<Point> points = PlanPoints(
      {.rtts_ms = {0, 5}, .ks = {4, 2}, .loads = {{1}, {8}}, .num_repeats = 2});
  ASSERT_EQ(points.size(), 24U);
  for (size_t i = 0; i < points.size(); i += 3) {
    EXPECT_EQ(points[i].cell.k, 0);
    EXPECT_EQ(points[i + 1].cell.k, 4);
    EXPECT_EQ(points[i + 2].cell.k, 2);
    EXPECT_EQ(points[i].cell.rtt_ms, points[i + 2].cell.rtt_ms);
  }
  EXPECT_EQ(points[11].repeat, 0);
  EXPECT_EQ(points[12].repeat, 1);
}

TEST(PlanPointsTest, OneUserComesBeforeTheCrowdsThatAreComparedWithIt) {
  std::vector<int> users;
  for (const Point& point : PlanPoints({.loads = {{8}, {1}, {4}}})) {
    users.push_back(point.cell.load.concurrency);
  }
  EXPECT_THAT(users, ElementsAre(1, 8, 4));
}

TEST(PlanPointsTest, SchedulesAreCrossedWithKAndPlainDecodingIsMeasuredOnce) {
  const std::vector<Point> points =
      PlanPoints({.schedules = {Schedule::kSequential, Schedule::kPredraft},
                  .ks = {0, 4, kAutoK}});
  std::vector<std::string> names;
  for (const Point& point : points) {
    names.push_back(point.cell.drafting().ToString());
  }
  EXPECT_THAT(names,
              ElementsAre("0", "4", "auto", "4 predraft", "auto predraft"));
}

TEST(ParseSchedulesTest, ReadsNamesAndRefusesOthers) {
  EXPECT_THAT(*ParseSchedules("--schedule", "predraft,sequential"),
              ElementsAre(Schedule::kPredraft, Schedule::kSequential));
  for (const char* list : {"", "predrafts", "ahead,ahead"}) {
    EXPECT_THAT(ParseSchedules("--schedule", list),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << list;
  }
}

TEST(EstimateSecondsTest, NeverBelowTheTimeOfOneRequest) {
  const Point point = {.cell = {.rtt_ms = 50}};
  EXPECT_GE(EstimateSeconds(point, {.seconds = 0.1, .max_tokens = 100}), 5);
  EXPECT_GE(EstimateSeconds(point, {.seconds = 60, .max_tokens = 100}), 60);
}

TEST(FormulaTest, AHitWaitsForNoDrafterThatIsBackBeforeTheVerdict) {
  RoundCosts costs = {.k = 4,
                      .draft_step_ms = 3,
                      .verify_ms = 26,
                      .drafter_rtt_ms = 20,
                      .verifier_rtt_ms = 20,
                      .ahead_ms = 15};
  EXPECT_DOUBLE_EQ(PredictRoundMs(costs), 78);
  costs.asked_ahead = 1;
  costs.hits = 1;
  EXPECT_DOUBLE_EQ(PredictRoundMs(costs), 46);
  costs.hits = 0.75;
  EXPECT_DOUBLE_EQ(PredictRoundMs(costs), 54);
  costs.verifier_rtt_ms = 0;  // the drafter is back 9 ms after the verdict
  EXPECT_DOUBLE_EQ(PredictRoundMs(costs), 43);
}

TEST(FormulaTest, ExpectedTokensIsTheGeometricSum) {
  EXPECT_DOUBLE_EQ(ExpectedTokensPerRound(0.5, 2), 1.75);
  EXPECT_DOUBLE_EQ(ExpectedTokensPerRound(0.8, 0), 1);
  EXPECT_DOUBLE_EQ(ExpectedTokensPerRound(1, 4), 5);
}

TEST(FormulaTest, AFittedAcceptanceGivesTheTokensItWasFittedTo) {
  for (const double tokens : {1.0, 3.1, 4.0, 4.06, 5.0}) {
    EXPECT_NEAR(ExpectedTokensPerRound(FitAcceptance(tokens, 4), 4), tokens,
                1e-9);
  }
}

// Chen et al. 2023 (Chinchilla) and the pair of GPT-2: without overhead.
TEST(FormulaTest, KnownPairsComeOutAsPublished) {
  const auto speedup = [](double tokens, double verify_ms, double draft_ms) {
    return tokens * verify_ms /
           PredictRoundMs(
               {.k = 4, .draft_step_ms = draft_ms, .verify_ms = verify_ms});
  };
  EXPECT_NEAR(speedup(4.0, 14.1, 1.8), 2.65, 0.005);
  EXPECT_NEAR(speedup(3.1, 14.1, 1.8), 2.05, 0.005);
  EXPECT_NEAR(speedup(4.06, 73.3, 11.9), 2.46, 0.005);
}

TEST(FormulaTest, OnlyARoundThatDraftsPaysTheDraftersRoundTrip) {
  RoundCosts costs = {.draft_step_ms = 1,
                      .verify_ms = 10,
                      .drafter_rtt_ms = 5,
                      .verifier_rtt_ms = 20,
                      .overhead_ms = 0.5};
  EXPECT_EQ(PredictRoundMs(costs), 30.5);
  costs.k = 3;
  EXPECT_EQ(PredictRoundMs(costs), 38.5);
}

}  // namespace
}  // namespace outrider::bench
