// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/ahead_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "gtest/gtest.h"

namespace outrider {
namespace {

// Seconds for a token each way.
struct WayCosts {
  double in_turn = 1;
  double ahead = 1;
  bool IsSlower(bool asks) const {
    return asks ? ahead > in_turn : in_turn > ahead;
  }
};

// One session whose rounds are a fifth longer or shorter by chance.
class TwoWays {
 public:
  // How many of these went the slower way; the first takes so many times as
  // long as it should.
  int Run(const WayCosts& costs, int num_rounds, double first = 1) {
    int num_slower = 0;
    for (int i = 0; i < num_rounds; ++i) {
      const bool asks = choice_.asks();
      if (costs.IsSlower(asks)) ++num_slower;
      const double noise = std::uniform_real_distribution(0.8, 1.2)(random_);
      choice_.Learn(
          {.seconds_per_token = noise * (i == 0 ? first : 1) *
                                (asks ? costs.ahead : costs.in_turn)});
    }
    return num_slower;
  }

 private:
  AheadChoice choice_;
  std::mt19937 random_{1};
};

// What the other way was before counts little beside what a trial shows.
TEST(AheadChoiceTest, TakesTheOtherWaySoonOnceItHasBecomeTheFaster) {
  for (const WayCosts& before :
       {WayCosts{1, 1.5}, WayCosts{1, 3}, WayCosts{1, 1.2}}) {
    for (const WayCosts& after :
         {WayCosts{2, 1.6}, WayCosts{2, 1.5}, WayCosts{4, 1}}) {
      TwoWays rounds;
      rounds.Run(before, 1000);
      EXPECT_LT(rounds.Run(after, 3000), 250)
          << before.ahead << " -> " << after.in_turn << ", " << after.ahead;
    }
  }
}

TEST(AheadChoiceTest, ARoundThatStandsStillIsForgottenSoon) {
  for (const double times : {5, 50, 1000}) {
    TwoWays rounds;
    rounds.Run({1, 1.3}, 1000);
    EXPECT_LT(rounds.Run({1, 1.3}, 3000, times), 150) << times;
  }
}

// Loads come and go.
TEST(AheadChoiceTest, DoesNotPayForTrialsAllTheTimeWhereBothWaysKeepChanging) {
  for (const int period : {20, 30, 100}) {
    TwoWays rounds;
    int num_slower = 0;
    for (int i = 0; i < 3000 / period; ++i) {
      const double load = i % 2 == 0 ? 1 : 2;
      num_slower += rounds.Run({load, 1.6 * load}, period);
    }
    EXPECT_LT(num_slower, 900) << period;
  }
}

// Without drafts both ways are the same; once one has them, and gains less than
// a clear change, it is not taken for better than what the other would gain.
TEST(AheadChoiceTest, TriesTheOtherWaySoonOnceOneHasDraftsThatBothWereWithout) {
  AheadChoice choice;
  for (int i = 0; i < 200; ++i) {
    choice.Learn({.seconds_per_token = 1, .has_drafts = false});
  }
  int num_slower = 0;
  const bool first = choice.asks();
  for (int i = 0; i < 2000; ++i) {
    const bool is_first = choice.asks() == first;
    if (is_first) ++num_slower;
    choice.Learn({.seconds_per_token = is_first ? 0.75 : 0.5});
  }
  EXPECT_LT(num_slower, 400);
}

// Where one way stays without drafts, that is no reason to try it all the time.
TEST(AheadChoiceTest, DoesNotPayForTrialsOfAWayThatStaysWithoutDrafts) {
  AheadChoice choice;
  int num_slower = 0;
  for (int i = 0; i < 5000; ++i) {
    const bool has_drafts = !choice.asks() && i >= 200;
    if (i >= 200 && !has_drafts) ++num_slower;
    choice.Learn(
        {.seconds_per_token = has_drafts ? 0.5 : 1, .has_drafts = has_drafts});
  }
  EXPECT_LT(num_slower, 200);
}

// Rounds that follow each other are alike, by their text and by the machine's
// mood, as those of the demo pair were seen to be: ten of them together vary
// far more than their number says.
class AlikeRounds {
 public:
  explicit AlikeRounds(int seed) : random_(seed) {}

  // What such rounds take, over what they would take the faster way.
  double Run(const WayCosts& costs, int num_rounds) {
    double seconds = 0;
    double seconds_of_fastest = 0;
    for (int i = 0; i < num_rounds; ++i) {
      mood_ = 0.93 * mood_ + 0.06 * normal_(random_);
      const double chance = std::max(0.2, 1 + 0.2 * normal_(random_));
      const double time = std::exp(mood_) * chance;
      const double own = choice_.asks() ? costs.ahead : costs.in_turn;
      seconds += own * time;
      seconds_of_fastest += std::min(costs.ahead, costs.in_turn) * time;
      choice_.Learn({.seconds_per_token = own * time});
    }
    return seconds / seconds_of_fastest;
  }

 private:
  AheadChoice choice_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  double mood_ = 0;  // a logarithm
};

TEST(AheadChoiceTest, KeepsToTheFasterWayThoughRoundsAreAlike) {
  constexpr int kNumSeeds = 20;
  for (const WayCosts& costs :
       {WayCosts{1, 0.6}, WayCosts{1, 0.85}, WayCosts{1, 1.2}}) {
    double sum = 0;
    for (int seed = 1; seed <= kNumSeeds; ++seed) {
      sum += AlikeRounds(seed).Run(costs, 4000);
    }
    EXPECT_LT(sum / kNumSeeds, 1.02) << costs.ahead;
  }
}

// Rounds without chance after some, in which it is known what each way takes.
class ChangingRounds {
 public:
  ChangingRounds() {
    for (int i = 0; i < 1000; ++i) Round(1);
    while (choice_.asks() || num_since_trial_ < 2) Round(1);
  }

  // In turn they take so much; ahead more than half as much again. How many of
  // them were tried ahead.
  int Run(double in_turn, int num_rounds) {
    int num_ahead = 0;
    for (int i = 0; i < num_rounds; ++i) num_ahead += Round(in_turn) ? 1 : 0;
    return num_ahead;
  }

 private:
  bool Round(double in_turn) {
    const bool asks = choice_.asks();
    num_since_trial_ = asks ? 0 : num_since_trial_ + 1;
    // They vary: where all are the same, the least change is beyond chance.
    sign_ = -sign_;
    choice_.Learn(
        {.seconds_per_token = (1 + 0.1 * sign_) * in_turn * (asks ? 1.7 : 1)});
    return asks;
  }

  AheadChoice choice_;
  int num_since_trial_ = 0;
  int sign_ = 1;
};

TEST(AheadChoiceTest, AChangeIsFollowedByATrialOnceItHasLastedOrIsGreat) {
  constexpr int kBlock = 10;
  ChangingRounds passing;
  EXPECT_EQ(passing.Run(1.6, kBlock) + passing.Run(1, 8 * kBlock), 0);
  ChangingRounds lasting;
  EXPECT_GT(lasting.Run(1.6, 5 * kBlock), 0);
  ChangingRounds great;
  EXPECT_GT(great.Run(3, 4 * kBlock), 0);
}

// A way that has become the faster one is taken by the first trial that shows
// it, whatever was seen of it before.
TEST(AheadChoiceTest, WhatATrialClearlyShowsIsNotOutvoted) {
  for (const double ahead : {0.7, 0.8}) {
    TwoWays rounds;
    rounds.Run({1, 1.5}, 1000);
    EXPECT_LT(rounds.Run({1, ahead}, 3000), 150) << ahead;
  }
}

// A round without drafts may bring many tokens, and take as long as several
// that draft: trials have their share of the time, not of the rounds.
TEST(AheadChoiceTest, TrialsOfLongRoundsAreNoLargerPartOfTheTime) {
  for (const bool in_turn_is_long : {false, true}) {
    AheadChoice choice;
    std::mt19937 random(1);
    double seconds = 0;
    double slower = 0;
    for (int i = 0; i < 20000; ++i) {
      const bool asks = choice.asks();
      const double noise = std::uniform_real_distribution(0.8, 1.2)(random);
      const AheadChoice::Round round = {
          .seconds_per_token = noise * (asks ? 1 : 1.2),
          .tokens = asks == in_turn_is_long ? 1.0 : 8.0};
      seconds += round.tokens * round.seconds_per_token;
      if (!asks) slower += round.tokens * round.seconds_per_token;
      choice.Learn(round);
    }
    EXPECT_LT(slower / seconds, 0.05) << in_turn_is_long;
  }
}

// Rounds in turn take ever longer from the 200th on, each block much longer
// than the one before.
TEST(AheadChoiceTest, TriesTheOtherWayWhileItsOwnStillChanges) {
  AheadChoice choice;
  int num_asked = 0;
  double in_turn = 1;
  for (int i = 0; i < 320; ++i) {
    if (i >= 200) in_turn *= 1.05;
    if (i >= 200 && choice.asks()) ++num_asked;
    choice.Learn({.seconds_per_token = choice.asks() ? 2 : in_turn});
  }
  EXPECT_GT(num_asked, 50);
}

// A machine that is so many times as slow for some rounds, about this many, and
// then for as many is not; drafting ahead takes 1 on it, and in turn so much.
struct MoodyMachine {
  double slowness = 1;
  int rounds = 1;
  double in_turn = 1;
};

// What is lost of the time to rounds of the slower way, after the first ones,
// where a model foretells so much of rounds in turn beside those ahead.
double LostShare(const MoodyMachine& machine,
                 std::optional<double> foretold_in_turn, uint32_t seed) {
  AheadChoice choice;
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  bool is_slow = false;
  double lost = 0;
  double needed = 0;
  for (int i = 0; i < 2400; ++i) {
    if (random() % machine.rounds == 0) is_slow = !is_slow;
    const bool asks = choice.asks();
    const double ahead =
        (is_slow ? machine.slowness : 1) * std::exp(0.2 * normal(random));
    const double own = ahead * (asks ? 1 : machine.in_turn);
    if (i >= 240) {
      needed += ahead * std::min(1.0, machine.in_turn);
      lost += own - ahead * std::min(1.0, machine.in_turn);
    }
    AheadChoice::Round round = {.seconds_per_token = own};
    if (foretold_in_turn.has_value()) {
      round.foretold = asks ? *foretold_in_turn : 1 / *foretold_in_turn;
    }
    choice.Learn(round);
  }
  return lost / needed;
}

// The mean over machines, and the worst of them. What is foretold is right,
// where anything is, or so wrong.
struct Losses {
  double mean = 0;
  double worst = 0;
};
Losses OnMoodyMachines(bool foretells, double error = 1) {
  constexpr int kSeeds = 10;
  Losses losses;
  int num_machines = 0;
  for (const double slowness : {1.5, 2.0, 2.5, 4.0}) {
    for (const int rounds : {60, 150}) {
      for (const double in_turn : {0.8, 0.95, 1.1, 1.3, 1.6}) {
        double lost = 0;
        for (int seed = 1; seed <= kSeeds; ++seed) {
          lost += LostShare(
                      {slowness, rounds, in_turn},
                      foretells ? std::optional(error * in_turn) : std::nullopt,
                      seed) /
                  kSeeds;
        }
        losses.mean += lost;
        losses.worst = std::max(losses.worst, lost);
        ++num_machines;
      }
    }
  }
  losses.mean /= num_machines;
  return losses;
}

TEST(AheadChoiceTest, AMachineThatIsSlowForAWhileIsNoReasonToTry) {
  const Losses losses = OnMoodyMachines(/*foretells=*/true);
  EXPECT_LT(losses.mean, 0.03);
  EXPECT_LT(losses.worst, 0.08);
  EXPECT_GT(OnMoodyMachines(/*foretells=*/false).mean, 1.3 * losses.mean);
}

TEST(AheadChoiceTest, WhatIsForetoldMayBeWrongAsLongAsItStaysSo) {
  for (const double error : {0.7, 1.4}) {
    EXPECT_LT(OnMoodyMachines(/*foretells=*/true, error).mean, 0.038) << error;
  }
}

// How many of 1000 rounds go ahead, of two sessions or one, once that takes
// three times as long and in turn as long as ever; a model sees nothing of it.
int NumAheadAfterUnseenChange(int num_sessions_before, int num_sessions) {
  AheadChoice choice;
  // They are the faster ones, so that others are the exception.
  for (int i = 0; i < 600 || !choice.asks(); ++i) {
    choice.Learn({.seconds_per_token = choice.asks() ? 1 : 1.3,
                  .num_sessions = num_sessions_before,
                  .foretold = choice.asks() ? 1.3 : 1 / 1.3});
  }
  int num_ahead = 0;
  for (int i = 0; i < 1000; ++i) {
    if (choice.asks()) ++num_ahead;
    choice.Learn({.seconds_per_token = choice.asks() ? 3 : 1.3,
                  .num_sessions = num_sessions,
                  .foretold = choice.asks() ? 1.3 : 1 / 1.3});
  }
  return num_ahead;
}

TEST(AheadChoiceTest, WhatAModelDoesNotSeeIsTriedLater) {
  EXPECT_LT(NumAheadAfterUnseenChange(1, 1), 400);
}

TEST(AheadChoiceTest, TriesSoonWhereOneGotCompanyWhateverIsForetold) {
  EXPECT_LT(NumAheadAfterUnseenChange(1, 2), 160);
}

// The machine was slow while the way in force was measured, and no more in the
// trial of the other one, which is the slower: a model knows better.
TEST(AheadChoiceTest, AWayThatAModelHasForTheSlowerOneIsConfirmed) {
  AheadChoice choice;
  const auto learn = [&](int num_rounds, double slowness) {
    int num_in_turn = 0;
    for (int i = 0; i < num_rounds; ++i) {
      const double in_turn = choice.asks() ? 1 : 1.3;
      if (!choice.asks()) ++num_in_turn;
      choice.Learn({.seconds_per_token = slowness * in_turn,
                    .foretold = 1.3 / (in_turn * in_turn)});
    }
    return num_in_turn;
  };
  learn(100, 1);
  int num_rounds = 0;
  while (learn(1, 1.45) == 0) ASSERT_LT(++num_rounds, 4000);
  learn(20, 1);  // the trial
  EXPECT_FALSE(choice.asks());
  EXPECT_LT(learn(1000, 1), 100);
}

TEST(AheadChoiceTest, TriesTheOtherWaySoonOnceItIsForetoldToHaveGained) {
  AheadChoice choice;
  for (int i = 0; i < 300; ++i) {
    choice.Learn({.seconds_per_token = choice.asks() ? 1 : 1.3,
                  .foretold = choice.asks() ? 1.3 : 1 / 1.3});
  }
  ASSERT_TRUE(choice.asks());
  int num_ahead = 0;
  for (int i = 0; i < 200; ++i) {
    if (choice.asks()) ++num_ahead;
    choice.Learn({.seconds_per_token = choice.asks() ? 3 : 2.4, .foretold = 1});
  }
  EXPECT_LT(num_ahead, 50);
}

}  // namespace
}  // namespace outrider
