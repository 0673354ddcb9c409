// SPDX-License-Identifier: Apache-2.0
#include "drafter/likely_outcomes.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/testing/answer_on_host.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::AnswerOnHost;
using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::DoubleNear;

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// A token that has this probability in its row has this logit.
float Logit(double probability) {
  return static_cast<float>(std::log(probability));
}

// Two drafts, 0 and 1, in a vocabulary of four: three rows.
LogitRows Rows() {
  return LogitRows::FromVector(
      {Logit(0.5), Logit(0.3), Logit(0.2), kMasked,     //
       Logit(0.1), Logit(0.6), Logit(0.1), Logit(0.2),  //
       Logit(0.25), Logit(0.05), Logit(0.3), Logit(0.4)},
      4);
}
const TokenSeq kDrafts = {0, 1};
const TokenSeq kOneDraft = {0};

void ExpectOutcome(const LikelyOutcome& outcome, int num_accepted,
                   TokenId next_token, double probability) {
  EXPECT_EQ(outcome.num_accepted, num_accepted);
  EXPECT_EQ(outcome.next_token, next_token);
  EXPECT_THAT(outcome.probability, DoubleNear(probability, 1e-6));
}

TEST(LikelyOutcomesTest, ComeInTheOrderOfTheirProbabilities) {
  const auto outcomes = LikelyOutcomes(
      Rows(), {.tokens = kDrafts, .acceptance = 0.5, .max_accepted = 2}, 4);
  ASSERT_THAT(outcomes, IsOk());
  ASSERT_EQ(outcomes->size(), 4u);
  // The first draft is refused in one half of all rounds; what is left of its
  // row without it is 0.3 and 0.2.
  ExpectOutcome((*outcomes)[0], 0, 1, 0.5 * 0.6);
  ExpectOutcome((*outcomes)[1], 0, 2, 0.5 * 0.4);
  ExpectOutcome((*outcomes)[2], 1, 3, 0.25 * 0.5);
  ExpectOutcome((*outcomes)[3], 2, 3, 0.25 * 0.4);
}

TEST(LikelyOutcomesTest, AllOfThemHaveAProbabilityOfOneTogether) {
  const auto outcomes = LikelyOutcomes(
      Rows(), {.tokens = kDrafts, .acceptance = 0.7, .max_accepted = 2}, 16);
  ASSERT_THAT(outcomes, IsOk());
  EXPECT_EQ(outcomes->size(), 2u + 3u + 4u);
  double total = 0;
  for (const LikelyOutcome& outcome : *outcomes) total += outcome.probability;
  EXPECT_NEAR(total, 1, 1e-6);
}

TEST(LikelyOutcomesTest, AnAcceptanceOfOneLeavesTheBonusAlone) {
  const auto outcomes = LikelyOutcomes(
      Rows(), {.tokens = kDrafts, .acceptance = 1, .max_accepted = 2}, 3);
  ASSERT_THAT(outcomes, IsOk());
  ASSERT_EQ(outcomes->size(), 3u);
  ExpectOutcome((*outcomes)[0], 2, 3, 0.4);
  ExpectOutcome((*outcomes)[1], 2, 2, 0.3);
  ExpectOutcome((*outcomes)[2], 2, 0, 0.25);
}

TEST(LikelyOutcomesTest, NoDraftInFlightHasABonusToo) {
  const auto outcomes = LikelyOutcomes(
      LogitRows::FromVector({Logit(0.25), Logit(0.75)}, 2), {}, 1);
  ASSERT_THAT(outcomes, IsOk());
  ASSERT_EQ(outcomes->size(), 1u);
  ExpectOutcome((*outcomes)[0], 0, 1, 0.75);
}

// Its row leaves nothing else any mass in 64 bits, and its replacement is still
// what the row ranks next.
TEST(LikelyOutcomesTest, ADraftThatIsAsGoodAsCertainHasAReplacement) {
  const auto outcomes = LikelyOutcomes(
      LogitRows::FromVector({0, -50000, -50001, 0, 0, 0}, 3),
      {.tokens = kOneDraft, .acceptance = 0.5, .max_accepted = 0}, 1);
  ASSERT_THAT(outcomes, IsOk());
  ASSERT_EQ(outcomes->size(), 1u);
  ExpectOutcome((*outcomes)[0], 0, 1, 0.5 / (1 + std::exp(-1.0)));
}

TEST(LikelyOutcomesTest, ADraftThatIsAllItsRowAllowsIsNotReplaced) {
  const auto outcomes = LikelyOutcomes(
      LogitRows::FromVector({0, kMasked, 0, 0}, 2),
      {.tokens = kOneDraft, .acceptance = 0.5, .max_accepted = 1}, 3);
  ASSERT_THAT(outcomes, IsOk());
  ASSERT_EQ(outcomes->size(), 2u);
  for (const LikelyOutcome& outcome : *outcomes)
    EXPECT_EQ(outcome.num_accepted, 1);
}

TEST(LikelyOutcomesTest, ThoseThatAreTooLongAreLeftOut) {
  const auto outcomes = LikelyOutcomes(
      Rows(), {.tokens = kDrafts, .acceptance = 0.5, .max_accepted = 0}, 16);
  ASSERT_THAT(outcomes, IsOk());
  ASSERT_EQ(outcomes->size(), 2u);
  ExpectOutcome((*outcomes)[0], 0, 1, 0.5 * 0.6);
}

// The rows of one draft may fill a message.
TEST(LikelyOutcomesTest, WhereThereIsRoomForNoneThereAreNone) {
  const auto outcomes = LikelyOutcomes(
      Rows(), {.tokens = kDrafts, .acceptance = 0.5, .max_accepted = 2}, 0);
  ASSERT_THAT(outcomes, IsOk());
  EXPECT_TRUE(outcomes->empty());
}

TEST(LikelyOutcomesTest, RowsThatAreNoLogitsAreAnError) {
  EXPECT_THAT(LikelyOutcomes(LogitRows::FromVector({0, NAN}, 2), {}, 1),
              StatusIs(absl::StatusCode::kInternal));
}

// What a model on a device would bring in place of `rows`.
LogitRows Answered(const LogitRows& rows, const InFlight& in_flight, int most) {
  const auto owner = std::make_shared<const LogitRows>(rows);
  const std::vector<RowQuestion> questions =
      AskOutcomes(in_flight, most, rows.vocab_size());
  std::vector<LogitRows::AskedRow> asked;
  for (int i = 0; i < rows.num_rows(); ++i) {
    auto answer = AnswerOnHost(questions[i], owner->Row(i));
    if (answer.has_value()) {
      asked.push_back({.answer = std::move(answer)});
    } else {
      asked.push_back({.logits = {owner, owner->Row(i).data()}});
    }
  }
  return LogitRows(std::move(asked), rows.vocab_size());
}

// There are equal logits, masked ones, and the draft is in every place of its
// row.
TEST(LikelyOutcomesTest, AnswersGiveTheOutcomesOfTheirRows) {
  constexpr int kRowSize = 30;
  std::minstd_rand random(3);
  for (int time = 0; time < 200; ++time) {
    std::vector<float> values;
    for (int i = 0; i < 3 * kRowSize; ++i) {
      const auto value = static_cast<float>(random() % 12);
      values.push_back(value == 0 ? kMasked : value / 3);
    }
    const LogitRows rows = LogitRows::FromVector(values, kRowSize);
    const TokenSeq drafts = {static_cast<TokenId>(random() % kRowSize),
                             static_cast<TokenId>(random() % kRowSize)};
    const InFlight in_flight = {
        .tokens = drafts, .acceptance = 0.6, .max_accepted = 2};
    const int most = 1 + static_cast<int>(random() % 16);
    const auto expected = LikelyOutcomes(rows, in_flight, most);
    const auto outcomes =
        LikelyOutcomes(Answered(rows, in_flight, most), in_flight, most);
    ASSERT_THAT(outcomes, IsOk());
    ASSERT_EQ(outcomes->size(), expected->size());
    for (size_t i = 0; i < outcomes->size(); ++i) {
      const LikelyOutcome& outcome = (*expected)[i];
      EXPECT_THAT((*outcomes)[i].probability,
                  DoubleNear(outcome.probability, 1e-12));
      ExpectOutcome((*outcomes)[i], outcome.num_accepted, outcome.next_token,
                    outcome.probability);
    }
  }
}

TEST(LikelyOutcomesTest, OnlyARowThatAllowsNoOtherComesWhole) {
  const LogitRows rows = LogitRows::FromVector({0, kMasked, 0, 0}, 2);
  const InFlight in_flight = {
      .tokens = kOneDraft, .acceptance = 0.5, .max_accepted = 1};
  const LogitRows answered = Answered(rows, in_flight, 3);
  EXPECT_EQ(answered.View(0).answer, nullptr);
  EXPECT_NE(answered.View(1).answer, nullptr);
  const auto outcomes = LikelyOutcomes(answered, in_flight, 3);
  ASSERT_THAT(outcomes, IsOk());
  EXPECT_EQ(outcomes->size(), 2u);
}

}  // namespace
}  // namespace outrider
