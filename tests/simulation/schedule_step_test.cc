// SPDX-License-Identifier: Apache-2.0
// K and schedule by control after the network or the text has become another,
// in virtual time.
#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "tests/simulation/timed_rounds.h"

namespace outrider {
namespace {

double BestRate(const TimedWorld& world, Schedule schedule) {
  double best = 0;
  for (const bool is_ahead : {false, true}) {
    if (is_ahead && schedule == Schedule::kSequential) break;
    for (const int k : {0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16}) {
      TimedRounds rounds(world, {.k = k, .is_ahead = is_ahead}, /*seed=*/1);
      rounds.Run(20 * world.num_users);
      best = std::max(best, rounds.Run(std::max(1500, 60 * world.num_users)));
    }
  }
  return best;
}

// What control gives of the best, on average over some seeds: in the rounds 51
// to 100, and in the 250 that follow.
struct Shares {
  double soon = 0;
  double later = 0;
};
Shares SharesOfBest(const TimedWorld& before, const TimedWorld& after,
                    int rounds_before = 1000,
                    Schedule schedule = Schedule::kAuto) {
  constexpr int kSeeds = 100;
  Shares rates;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    TimedRounds rounds(before, {.is_by_control = true, .schedule = schedule},
                       seed);
    rounds.Run(rounds_before);
    rounds.Become(after);
    rounds.Run(50);
    rates.soon += rounds.Run(50) / kSeeds;
    rates.later += rounds.Run(250) / kSeeds;
  }
  const double best = BestRate(after, schedule);
  return {.soon = rates.soon / best, .later = rates.later / best};
}

TEST(ScheduleStepTest, AutoIsNearlyAsFastAsTheBestFrom50RoundsAfterAChangeOn) {
  const TimedWorld near = {.round_trip = 0.001};
  TimedWorld far = near;
  far.round_trip = 0.04;
  TimedWorld easy = {.round_trip = 0.005, .acceptance = 0.9};
  TimedWorld hard = easy;
  hard.acceptance = 0.3;
  struct Step {
    const TimedWorld& before;
    const TimedWorld& after;
  };
  for (const Step& step :
       {Step{near, far}, {far, near}, {easy, hard}, {hard, easy}}) {
    const Shares shares = SharesOfBest(step.before, step.after);
    const std::string name = step.before.Name() + " -> " + step.after.Name();
    EXPECT_GE(shares.soon, 0.95) << name;
    EXPECT_GE(shares.later, 0.95) << name;
  }
}

// Where a pass takes no longer than a few calls, drafts in turn gain next to
// nothing and those ahead do, by a drafter that drafts for longer after it was
// left alone. What was seen of it at a bad time is not believed for long.
TEST(ScheduleStepTest, ADrafterThatDidNotPayIsTriedAheadSoonEnough) {
  constexpr int kSeeds = 40;
  for (const double first_draft : {0.0, 0.0006}) {
    const TimedWorld world = {.round_trip = 0.0003,
                              .acceptance = 0.65,
                              .hits_of_all = 0.65,
                              .hits_of_refused = 0.5,
                              .pass = 0.0009,
                              .row = 0.0002,
                              .draft = 0.0002,
                              .draft_row = 0.00002,
                              .first_draft = first_draft};
    TimedWorld hard = world;
    for (const double acceptance : {0.1, 0.3}) {
      hard.acceptance = acceptance;
      double rate = 0;
      for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
        TimedRounds rounds(hard, {.is_by_control = true}, seed);
        rounds.Run(100);
        rounds.Become(world);
        rounds.Run(600);
        rate += rounds.Run(200) / kSeeds;
      }
      EXPECT_GE(rate, 0.95 * BestRate(world, Schedule::kAuto))
          << acceptance << " before, a first draft takes " << first_draft
          << " more";
    }
  }
}

TEST(ScheduleStepTest, ADrafterThatPaysAgainIsTakenBackThoughItBeginsSlowly) {
  constexpr int kSeeds = 8;
  for (const int num_users : {1, 4}) {
    TimedWorld world = {.round_trip = 0.001,
                        .acceptance = 0.1,
                        .first_draft = 0.3,
                        .num_users = num_users};
    TimedWorld easy = world;
    easy.acceptance = 0.85;
    double rate = 0;
    for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
      TimedRounds rounds(
          world, {.is_by_control = true, .schedule = Schedule::kSequential},
          seed);
      rounds.Run(1500 * num_users);
      rounds.Become(easy);
      rounds.Run(2000 * num_users);
      rate += rounds.Run(300 * num_users) / kSeeds;
    }
    EXPECT_GE(rate, 0.9 * BestRate(easy, Schedule::kSequential)) << num_users;
  }
}

// In turn a network so far costs more than drafts give: the verifier is to go
// on by itself, by runs that the near network had no use for.
TEST(ScheduleStepTest, InTurnAutoStopsDraftingWhereTheNetworkBecomesTooFar) {
  for (const double before : {0.0005, 0.02}) {
    const TimedWorld near = {.round_trip = before};
    const TimedWorld far = {.round_trip = 0.05};
    const Shares shares =
        SharesOfBest(near, far, /*rounds_before=*/1000, Schedule::kSequential);
    EXPECT_GE(shares.soon, 0.95) << near.Name();
    EXPECT_GE(shares.later, 0.95) << near.Name();
  }
}

// A pass takes as long as the rows of all, and one user drafts more than many
// should: what these cost each other is seen from their first passes on.
TEST(ScheduleStepTest, ACrowdIsDraftedForAsItShouldBeWithin16RoundsOfEach) {
  struct Crowd {
    int num_before = 0;
    int num_users = 0;
  };
  constexpr int kSeeds = 3;
  for (const double row : {0.00025, 0.002}) {
    for (const double round_trip : {0.0, 0.02}) {
      for (const Crowd& crowd : {Crowd{1, 8}, {1, 32}, {1, 64}, {8, 64}}) {
        TimedWorld few = {.round_trip = round_trip,
                          .row = row,
                          .num_users = crowd.num_before};
        TimedWorld many = few;
        many.num_users = crowd.num_users;
        double rate = 0;
        for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
          TimedRounds rounds(
              few, {.is_by_control = true, .schedule = Schedule::kSequential},
              seed);
          rounds.Run(300 * crowd.num_before);
          rounds.Join(crowd.num_users - crowd.num_before);
          rounds.Run(16 * crowd.num_users);
          rate += rounds.Run(48 * crowd.num_users) / kSeeds;
        }
        EXPECT_GE(rate, 0.93 * BestRate(many, Schedule::kSequential))
            << crowd.num_before << " -> " << many.Name() << ", row " << row;
      }
    }
  }
}

TEST(ScheduleStepTest, AutoIsNearlyAsFastAsTheBestAfterItsFirst50Rounds) {
  for (const double round_trip : {0.0005, 0.02, 0.05}) {
    for (const double acceptance : {0.5, 0.8, 0.95}) {
      const TimedWorld world = {.round_trip = round_trip,
                                .acceptance = acceptance};
      const Shares shares = SharesOfBest(world, world, /*rounds_before=*/0);
      EXPECT_GE(shares.soon, 0.95) << world.Name();
      // The way that was first seen without drafts is tried with them then.
      EXPECT_GE(shares.later, 0.95) << world.Name();
    }
  }
}

}  // namespace
}  // namespace outrider
