// SPDX-License-Identifier: Apache-2.0
// Drafts that are made ahead of the verdict leave the law as it is, whatever
// the outcomes are that they are made for.
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::schedules {
namespace {

class ScheduleTest
    : public ::testing::TestWithParam<std::tuple<Schedule, RuleKind>> {
 protected:
  // It is that all drafts stand; what comes after it a book finds in the same
  // row.
  static bool HasOneOutcome() {
    return std::get<Schedule>(GetParam()) == Schedule::kAhead;
  }
  Enumeration Check(LawCase c) {
    std::tie(c.config.schedule, c.config.rule) = GetParam();
    c.config.has_first_round = true;
    Enumeration result = laws_.Expect(c);
    std::cout << result.expected_hits << " hits\n";
    return result;
  }

 private:
  LawCoverage laws_;
};

TEST_P(ScheduleTest, HasTheTargetsLaw) {
  for (const DrafterKind drafter :
       {DrafterKind::kCorrelated, DrafterKind::kReversed, DrafterKind::kSame}) {
    for (const int max_outcomes : {1, 2}) {
      if (max_outcomes > 1 && HasOneOutcome()) continue;
      for (const bool by_the_book : {false, true}) {
        if (by_the_book && HasOneOutcome()) continue;
        // Of four tokens hits are rare, but where the drafter is the target.
        const int length = drafter == DrafterKind::kSame ? 4 : 5;
        const Enumeration result =
            Check({.vocab_size = 3,
                   .drafter = drafter,
                   .config = {.sampling = {.temperature = 0.8},
                              .drafting = {.support_size = 2},
                              .draft_lengths = {1},
                              .max_outcomes = max_outcomes,
                              .has_outcomes_by_the_book = by_the_book},
                   .length = length});
        EXPECT_GT(result.expected_hits, 0.01);
      }
    }
  }
}

TEST_P(ScheduleTest, HasTheTargetsLawWhereBlocksAreLonger) {
  for (const bool by_the_book : {false, true}) {
    if (by_the_book && HasOneOutcome()) continue;
    const Enumeration result =
        Check({.vocab_size = 3,
               .config = {.sampling = {.temperature = 1.3},
                          .drafting = {.support_size = 2},
                          .draft_lengths = {2},
                          .max_outcomes = 1,
                          .has_outcomes_by_the_book = by_the_book},
               .length = 5});
    EXPECT_GT(result.expected_hits, 0.01);
  }
}

// The drafter is asked, in turn or ahead, where the text does not repeat
// itself.
TEST_P(ScheduleTest, HasTheTargetsLawBehindLookups) {
  const Enumeration result = Check({.vocab_size = 3,
                                    .config = {.sampling = {.temperature = 0.8},
                                               .drafting = {.support_size = 2},
                                               .draft_lengths = {1},
                                               .prompt_lookup = true,
                                               .max_outcomes = 1},
                                    .length = 5});
  EXPECT_GT(result.expected_hits, 0.01);
}

// Nothing is drawn.
TEST_P(ScheduleTest, IsOneTextWhereTheTemperatureIsZero) {
  const Enumeration result = Check({.vocab_size = 5,
                                    .config = {.sampling = {.temperature = 0},
                                               .draft_lengths = {4},
                                               .max_outcomes = 8},
                                    .length = 24});
  EXPECT_EQ(result.law.size(), 1u);
  EXPECT_GT(result.expected_hits, 1);
}

std::string NameOf(
    const ::testing::TestParamInfo<std::tuple<Schedule, RuleKind>>& info) {
  const auto [schedule, rule] = info.param;
  return std::string(schedule == Schedule::kAhead ? "Ahead" : "Predraft") +
         (rule == RuleKind::kBlock ? "Block" : "Rejection");
}
INSTANTIATE_TEST_SUITE_P(
    Schedules, ScheduleTest,
    ::testing::Combine(::testing::Values(Schedule::kAhead, Schedule::kPredraft),
                       ::testing::Values(RuleKind::kRejection,
                                         RuleKind::kBlock)),
    NameOf);

}  // namespace
}  // namespace outrider::testing::schedules
