// SPDX-License-Identifier: Apache-2.0
// Whether drafts are made ahead, how many, and for how many outcomes follows
// from what became of past rounds, and the law stays. It does not where an
// outcome is kept or not by the draft that was drawn for it.
#include <iostream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "coordinator/control/draft_length_control.h"
#include "coordinator/round/draft_client.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::adaptive_schedule {
namespace {

constexpr double kFigure = 1e-1;  // total variation of the mistake

// The real control with rounds of a time that the test names.
class TimedControl {
 public:
  DraftLengthControl::Choice ChooseAhead() const {
    return control_.ChooseAhead(1, DraftLengthMode::kFixed);
  }
  bool IsAhead() const { return ChooseAhead().num_drafts > 0; }

  void Learn(DraftLengthControl::Choice choice, RoundStats round,
             double seconds) {
    choice.after = last_round_;
    round.round_seconds = seconds;
    round.drafter.call_seconds = seconds / 2;
    round.verifier.call_seconds = seconds / 2;
    last_round_ = control_.Learn(choice, round);
  }
  // A round that went the way in force, and whose draft stood.
  void LearnOne() {
    DraftLengthControl::Choice choice =
        control_.Choose(1, DraftLengthMode::kFixed);
    choice.drafts_ahead = choice.is_ahead;
    RoundStats round = {.num_drafted = 1, .num_accepted = 1};
    if (choice.is_ahead) round.ahead.outcome = AheadStats::Outcome::kMiss;
    Learn(choice, round, /*seconds=*/1);
  }

 private:
  DraftLengthControl control_{Schedule::kAuto};
  int64_t last_round_ = 0;
};

// How many such rounds there are before it has tried both ways and decides.
int CountRoundsToDecide() {
  TimedControl control;
  int num_rounds = 0;
  for (; !control.IsAhead(); ++num_rounds) control.LearnOne();
  for (; control.IsAhead(); ++num_rounds) control.LearnOne();
  return num_rounds;
}

// Makes drafts ahead where the schedule kAuto does. Both ways have been tried,
// and the first round that counts tips the scales, by how many drafts stood.
class ControlledSchedule final : public DraftClient {
 public:
  explicit ControlledSchedule(DraftClient& drafts) : drafts_(drafts) {
    static const int kRoundsToDecide = CountRoundsToDecide();
    for (int i = 1; i < kRoundsToDecide; ++i) control_.LearnOne();
  }

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    return drafts_.Propose(session, num_tokens);
  }
  void DraftAhead(Session& session, const Draft& in_flight) override {
    is_ahead_ = control_.IsAhead();
    if (is_ahead_) drafts_.DraftAhead(session, in_flight);
  }
  void Learn(const RoundStats& round) override {
    drafts_.Learn(round);
    if (round.num_drafted == 0) return;
    control_.Learn({.num_drafts = round.num_drafted,
                    .is_ahead = is_ahead_,
                    .drafts_ahead = is_ahead_},
                   round, round.num_accepted > 0 ? 0.01 : 100);
    ++(is_ahead_ ? num_ahead_ : num_in_turn_);
    history_.push_back(round.num_accepted);
    history_.push_back(static_cast<int>(round.ahead.outcome));
  }

  // All that its choices follow from.
  const std::vector<int64_t>& history() const { return history_; }

  // Rounds of all of them, in all that they went through.
  static inline int num_ahead_ = 0;
  static inline int num_in_turn_ = 0;

 private:
  DraftClient& drafts_;
  TimedControl control_;
  bool is_ahead_ = false;
  std::vector<int64_t> history_;
};

// Drafts as many as the real control says, in front of production's drafts
// ahead: what was drafted ahead may be more than the next round wants. Time is
// such that drafts just pay, and each round tips the scales.
class ControlledLength final : public DraftClient {
 public:
  explicit ControlledLength(DraftClient& drafts) : drafts_(drafts) {
    for (int i = 0; i < kRoundsBefore; ++i) {
      choice_ = control_.Choose(kMost, DraftLengthMode::kAuto);
      LearnTimed({.num_drafted = choice_.num_drafts,
                  .num_accepted = i % 3 != 1 ? choice_.num_drafts : 0});
    }
  }

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    choice_ = control_.Choose(num_tokens, DraftLengthMode::kAuto);
    chosen_.insert(choice_.num_drafts);
    return drafts_.Propose(session, choice_.num_drafts);
  }
  void DraftAhead(Session& session, const Draft& in_flight) override {
    drafts_.DraftAhead(session, in_flight);
  }
  void Learn(const RoundStats& round) override {
    drafts_.Learn(round);
    LearnTimed(round);
    for (const int number :
         {choice_.num_drafts, round.num_drafted, round.num_accepted,
          static_cast<int>(round.ahead.outcome)}) {
      history_.push_back(number);
    }
  }

  // All that its choices follow from.
  const std::vector<int64_t>& history() const { return history_; }
  // What all of them chose, in all that they went through.
  static std::set<int>& chosen() { return chosen_; }

  static constexpr int kMost = 2;

 private:
  static constexpr int kRoundsBefore = 24;
  static constexpr double kSecondsOfADraft = 0.15;
  static constexpr double kSecondsOfVerification = 0.3;
  static inline std::set<int> chosen_;

  void LearnTimed(RoundStats round) {
    const double seconds = kSecondsOfADraft * round.num_drafted;
    round.drafter.call_seconds = round.drafter.compute_seconds = seconds;
    round.verifier = {.call_seconds = kSecondsOfVerification,
                      .compute_seconds = kSecondsOfVerification};
    round.round_seconds = seconds + kSecondsOfVerification;
    control_.Learn(choice_, round);
  }

  DraftClient& drafts_;
  DraftLengthControl control_{Schedule::kSequential, /*chooses_stop=*/false};
  DraftLengthControl::Choice choice_;
  std::vector<int64_t> history_;
};

class AdaptiveScheduleTest : public ::testing::TestWithParam<RuleKind> {
 protected:
  // The law of a text of so many tokens where a Policy stands in front of
  // production's drafts ahead, of rounds that may draft `k`.
  template <typename Policy>
  static void ExpectTargetsLaw(int k, int length) {
    const Sabotage by_control = {
        .drafts =
            [](DraftClient& drafts) {
              return std::make_unique<Policy>(drafts);
            },
        .memory =
            [](DraftClient& drafts) {
              return static_cast<Policy&>(drafts).history();
            }};
    ExpectExact({.vocab_size = 3,
                 .config = Config(k, /*max_outcomes=*/1, by_control),
                 .length = length});
  }
  static Enumeration ExpectExact(const LawCase& law_case) {
    LawCoverage laws;
    Enumeration result = laws.Expect(law_case);
    std::cout << result.expected_hits << " hits\n";
    EXPECT_GT(result.expected_hits, 0.01);
    return result;
  }
  static ClusterConfig Config(int k, int max_outcomes, Sabotage sabotage) {
    return {.sampling = {.temperature = 0.8},
            .rule = GetParam(),
            .drafting = {.support_size = 2},
            .draft_lengths = {k},
            .has_first_round = true,
            .schedule = Schedule::kPredraft,
            .max_outcomes = max_outcomes,
            .sabotage = std::move(sabotage)};
  }
};

TEST_P(AdaptiveScheduleTest, HasTheTargetsLawWhateverThePastRoundsDecide) {
  ControlledSchedule::num_ahead_ = ControlledSchedule::num_in_turn_ = 0;
  ExpectTargetsLaw<ControlledSchedule>(/*k=*/1, /*length=*/6);
  EXPECT_GT(ControlledSchedule::num_ahead_, 0);
  EXPECT_GT(ControlledSchedule::num_in_turn_, 0);
}

TEST_P(AdaptiveScheduleTest, HasTheTargetsLawWhateverTheyDecideOfItsLength) {
  ControlledLength::chosen().clear();
  ExpectTargetsLaw<ControlledLength>(ControlledLength::kMost, /*length=*/5);
  EXPECT_GE(ControlledLength::chosen().size(), 2U);
}

// There are more of them where the last round's draft stood.
TEST_P(AdaptiveScheduleTest, HasTheTargetsLawHoweverManyOutcomesTheyChoose) {
  const auto by_last_round = [](const RoundView& past, int most) {
    return past.verdict->num_accepted > 0 ? most : 1;
  };
  const Enumeration result =
      ExpectExact({.vocab_size = 3,
                   .config = Config(/*k=*/1, /*max_outcomes=*/2,
                                    {.num_outcomes = by_last_round}),
                   .length = 6});
  // With one each time there are 0.72 hits, with two 1.26: both numbers count.
  EXPECT_GT(result.expected_hits, 0.8);
  EXPECT_LT(result.expected_hits, 1.2);
}

// The mistake: which of them are there follows from their own drafts.
TEST_P(AdaptiveScheduleTest, ToKeepAnOutcomeForItsOwnDraftBreaksIt) {
  const auto keep = [](std::vector<OutcomeDraft>& outcomes) {
    std::erase_if(outcomes, [](const OutcomeDraft& outcome) {
      return outcome.draft.length() > 0 && outcome.draft.tokens[0] == 0;
    });
  };
  const ToyModel model(3, DrafterKind::kCorrelated);
  const ClusterConfig config =
      Config(/*k=*/1, /*max_outcomes=*/2, {.alter_outcomes = keep});
  const Difference difference =
      Compare(Enumerate(config, model, /*length=*/5).law,
              PlainLaw(model, config.sampling, {kToyPrompt}, 5, {}));
  std::cout << "joint TV " << difference.total_variation << "\n";
  EXPECT_GT(difference.total_variation, kFigure);
}

INSTANTIATE_TEST_SUITE_P(Rules, AdaptiveScheduleTest,
                         ::testing::Values(RuleKind::kRejection,
                                           RuleKind::kBlock));

}  // namespace
}  // namespace outrider::testing::adaptive_schedule
