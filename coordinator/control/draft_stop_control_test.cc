// SPDX-License-Identifier: Apache-2.0
// Where an unsure drafter ends is chosen with K, in virtual time.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_format.h"
#include "coordinator/control/draft_length_control.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr int kMostAsked = 12;
constexpr int kNumRounds = 6000;
constexpr double kSureConfidence = 0.95;
constexpr double kUnsureConfidence = 0.3;

// Texts have easy places and hard ones, and the drafter knows which is which.
struct Texts {
  double round_trip = 0;  // seconds, to each node
  double pass = 0;
  double row = 0;
  double draft = 0;
  double sure = 0.7;  // share of the places
  double acceptance = 0.95;
  double acceptance_unsure = 0.35;
  bool is_first_sure = false;  // always

  std::string Name() const {
    return absl::StrFormat("%g ms, pass %g, row %g, draft %g, sure %g",
                           round_trip * 1e3, pass * 1e3, row * 1e3, draft * 1e3,
                           sure);
  }
};

// One round of a single user.
RoundStats RoundOf(const Texts& texts, const DraftLength& length,
                   double min_probability, std::mt19937& generator) {
  RoundStats round;
  double probability = 1;
  bool all_stand = true;
  while (round.num_drafted < length.num_drafts &&
         probability >= min_probability) {
    const bool is_sure = std::bernoulli_distribution(texts.sure)(generator) ||
                         (texts.is_first_sure && round.num_drafted == 0);
    const double confidence = is_sure ? kSureConfidence : kUnsureConfidence;
    all_stand &= std::bernoulli_distribution(
        is_sure ? texts.acceptance : texts.acceptance_unsure)(generator);
    ++round.num_drafted;
    round.num_accepted += all_stand ? 1 : 0;
    probability *= confidence;
    round.confidences.push_back(static_cast<float>(confidence));
  }
  if (length.num_drafts > 0) {
    round.drafter.compute_seconds = texts.draft * round.num_drafted;
    round.drafter.call_seconds =
        texts.round_trip + round.drafter.compute_seconds;
  }
  round.verifier.compute_seconds =
      texts.pass + texts.row * (round.num_drafted + 1);
  round.verifier.call_seconds =
      texts.round_trip + round.verifier.compute_seconds;
  round.round_seconds =
      round.drafter.call_seconds + round.verifier.call_seconds;
  return round;
}

// Tokens a second with lengths that `choose` gives and `learn` is told of.
template <typename Choose, typename Learn>
double Rate(const Texts& texts, uint32_t seed, const Choose& choose,
            const Learn& learn) {
  std::mt19937 generator(seed);
  double tokens = 0;
  double elapsed = 0;
  for (int i = 0; i < kNumRounds; ++i) {
    const DraftLengthControl::Choice choice = choose();
    const RoundStats round =
        RoundOf(texts, {choice.num_drafts, choice.stop},
                DraftLength::kStops[choice.stop], generator);
    learn(choice, round);
    tokens += round.num_accepted + 1;
    elapsed += round.round_seconds;
  }
  return tokens / elapsed;
}

double RateOfLength(const Texts& texts, const DraftLength& length) {
  return Rate(
      texts, 1,
      [&] {
        return DraftLengthControl::Choice{.num_drafts = length.num_drafts,
                                          .stop = length.stop};
      },
      [](const DraftLengthControl::Choice&, const RoundStats&) {});
}

double BestRateOfTexts(const Texts& texts, int num_stops) {
  double best = 0;
  for (int stop = 0; stop < num_stops; ++stop) {
    for (int k = 0; k <= kMostAsked; ++k) {
      best = std::max(best, RateOfLength(texts, {k, stop}));
    }
  }
  return best;
}

double RateOfControl(const Texts& texts, DraftLengthControl& control) {
  int64_t last_round = 0;
  return Rate(
      texts, 2,
      [&] { return control.Choose(kMostAsked, DraftLengthMode::kAuto); },
      [&](DraftLengthControl::Choice choice, const RoundStats& round) {
        choice.after = last_round;
        last_round = control.Learn(choice, round);
      });
}

double RateOfControl(const Texts& texts) {
  DraftLengthControl control;
  return RateOfControl(texts, control);
}

// A small pair on one machine, whose passes cost by the row, and a large one.
constexpr Texts kTexts[] = {
    {.round_trip = 0.0002, .pass = 0.0007, .row = 0.0001, .draft = 0.00015},
    {.round_trip = 0.0005, .pass = 0.025, .row = 0.00025, .draft = 0.003},
};

TEST(DraftStopControlTest, IsNearlyAsFastAsTheBestKAndStop) {
  for (Texts texts : kTexts) {
    for (const double round_trip : {texts.round_trip, 0.02}) {
      for (const double sure : {0.5, 0.7, 0.9}) {
        texts.round_trip = round_trip;
        texts.sure = sure;
        const double rate = RateOfControl(texts);
        EXPECT_GE(rate, 0.95 * BestRateOfTexts(texts, DraftLength::kNumStops))
            << texts.Name();
        EXPECT_GE(rate, 0.97 * RateOfLength(texts, {})) << texts.Name();
      }
    }
  }
}

TEST(DraftStopControlTest, IsFasterThanAnyKAloneWhereTheDrafterKnows) {
  for (const Texts& texts : kTexts) {
    EXPECT_GE(RateOfControl(texts),
              1.03 * BestRateOfTexts(texts, /*num_stops=*/1))
        << texts.Name();
  }
}

// What it gives its first choice says little, and nothing ends for that.
TEST(DraftStopControlTest, WhoIsRightAndNeverSureIsNotEnded) {
  for (Texts texts : kTexts) {
    texts.round_trip = 0.02;
    texts.sure = 0;
    texts.acceptance_unsure = 0.95;
    EXPECT_GE(RateOfControl(texts),
              0.95 * BestRateOfTexts(texts, DraftLength::kNumStops))
        << texts.Name();
  }
}

// The first draft of a round fares as before, so that only trials show what
// comes of the others.
TEST(DraftStopControlTest, AStopIsLeftAgainWhereUnsureDraftsStand) {
  for (Texts texts : kTexts) {
    texts.is_first_sure = true;
    texts.sure = 0.3;
    texts.acceptance_unsure = 0.2;
    DraftLengthControl control;
    RateOfControl(texts, control);
    texts.acceptance_unsure = 0.95;
    RateOfControl(texts, control);
    EXPECT_GE(RateOfControl(texts, control),
              0.93 * BestRateOfTexts(texts, DraftLength::kNumStops))
        << texts.Name();
  }
}

TEST(DraftStopControlTest, WhoNamesAMinimumOrKKeepsIt) {
  DraftLengthControl named(Schedule::kSequential, /*chooses_stop=*/false);
  DraftLengthControl free;
  EXPECT_FALSE(named.Choose(kMostAsked, DraftLengthMode::kAuto).chooses_stop);
  // It is never reached, and has the drafter say how sure it was.
  const DraftLengthControl::Choice fixed =
      free.Choose(kMostAsked, DraftLengthMode::kFixed);
  EXPECT_TRUE(fixed.chooses_stop);
  EXPECT_EQ(fixed.stop, 0);
  EXPECT_TRUE(free.Choose(kMostAsked, DraftLengthMode::kAuto).chooses_stop);
}

}  // namespace
}  // namespace outrider
