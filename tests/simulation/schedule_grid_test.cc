// SPDX-License-Identifier: Apache-2.0
// K and schedule by control beside every fixed K in turn and ahead, over round
// trips, acceptance and users, in virtual time.
#include <algorithm>
#include <initializer_list>

#include "gtest/gtest.h"
#include "tests/simulation/timed_rounds.h"

namespace outrider {
namespace {

struct Best {
  double rate = 0;
  TimedWay way = {};
};

double RateOf(const TimedWorld& world, const TimedWay& way, uint32_t seed = 1) {
  TimedRounds rounds(world, way, seed);
  rounds.Run(20 * world.num_users);
  // The best of many is no better than that by luck.
  return rounds.Run(
      world.num_users == 1 ? 1500 : std::max(150 * 8, 60 * world.num_users));
}

Best BestOf(const TimedWorld& world, Schedule schedule) {
  Best best;
  for (const bool is_ahead : {false, true}) {
    if (is_ahead && schedule == Schedule::kSequential) break;
    for (const int k : {0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16}) {
      const TimedWay way = {.k = k, .is_ahead = is_ahead};
      const double rate = RateOf(world, way);
      if (rate > best.rate) best = {.rate = rate, .way = way};
    }
  }
  return best;
}

double RateByControl(const TimedWorld& world, Schedule schedule, uint32_t seed,
                     int num_rounds) {
  TimedRounds rounds(world, {.is_by_control = true, .schedule = schedule},
                     seed);
  rounds.Run(400 * world.num_users);
  return rounds.Run(num_rounds);
}

// The best, and what control gives. A few users meet in passes as chance has
// it, so that one seed differs from the next by 2 %: of these, both are means
// over some seeds, other ones than the best was found by. What control gives is
// such a mean for one user and for a crowd as well, as its trials are a matter
// of chance.
struct Rates {
  Best best = {};
  double by_control = 0;
};
constexpr int kCrowd = 32;
constexpr uint32_t kNumSeeds = 16;
constexpr uint32_t kNumSeedsOfCrowd =
    4;  // each has as many rounds as all those
Rates RatesOf(const TimedWorld& world, Schedule schedule) {
  Best best = BestOf(world, schedule);
  const bool is_few = world.num_users > 1 && world.num_users < kCrowd;
  const uint32_t num_seeds =
      world.num_users < kCrowd ? kNumSeeds : kNumSeedsOfCrowd;
  const int num_rounds = (is_few ? 200 : 1000) * world.num_users;
  if (is_few) best.rate = 0;
  double by_control = 0;
  for (uint32_t seed = 2; seed < 2 + num_seeds; ++seed) {
    if (is_few) best.rate += RateOf(world, best.way, seed) / num_seeds;
    by_control += RateByControl(world, schedule, seed, num_rounds) / num_seeds;
  }
  return {best, by_control};
}

// The least that control gives, of what the best and what no drafts give.
constexpr double kLeastOfBest = 0.95;
constexpr double kLeastOfNone = 0.97;
// A crowd tries seldom, and takes long to find out about a few percent.
constexpr double kLeastOfNoneOfCrowd = 0.955;

void ExpectNearlyBest(const TimedWorld& world,
                      Schedule schedule = Schedule::kAuto) {
  const auto [best, rate] = RatesOf(world, schedule);
  EXPECT_GE(rate, kLeastOfBest * best.rate)
      << world.Name() << ": K = " << best.way.k
      << (best.way.is_ahead ? " ahead" : " in turn");
  EXPECT_GE(rate,
            (world.num_users < kCrowd ? kLeastOfNone : kLeastOfNoneOfCrowd) *
                RateOf(world, {.k = 0}))
      << world.Name();
}

void ExpectNearlyBestInCells(TimedWorld world) {
  for (const double round_trip_ms : {0.2, 20.0, 160.0}) {
    for (const double acceptance : {0.5, 0.8, 0.95}) {
      world.round_trip = round_trip_ms / 1000;
      world.acceptance = acceptance;
      ExpectNearlyBest(world);
    }
  }
}

class ScheduleGridTest : public ::testing::TestWithParam<int> {};

TEST_P(ScheduleGridTest, AutoIsNearlyAsFastAsTheBestKAndSchedule) {
  TimedWorld world = {.num_users = GetParam()};
  for (const double round_trip_ms : {0.0, 1.0, 5.0, 20.0, 50.0, 160.0}) {
    for (const double acceptance : {0.5, 0.7, 0.8, 0.9, 0.95}) {
      world.round_trip = round_trip_ms / 1000;
      world.acceptance = acceptance;
      ExpectNearlyBest(world);
    }
  }
}

// The default of a coordinator.
TEST(InTurnGridTest, AutoIsNearlyAsFastAsTheBestKInTurn) {
  for (const double round_trip_ms : {0.0, 5.0, 20.0, 50.0, 160.0}) {
    for (const double acceptance : {0.5, 0.8, 0.95}) {
      ExpectNearlyBest(
          {.round_trip = round_trip_ms / 1000, .acceptance = acceptance},
          Schedule::kSequential);
    }
  }
}

// Passes of one user, whose kernels take rows by the tile: what a tile more
// costs, and a row, as shares of a pass. Five rows are AVX2's, with T(5) = 1.35
// and T(6) = 1.75 times T(1).
struct Tiles {
  int rows = 1;
  double tile = 0;
  double row = 0;
};
constexpr Tiles kTiles[] = {{5, 0.3125, 0.0875}, {4, 0.5, 0.02}, {8, 0.25, 0}};

TEST(StaircaseGridTest, AutoIsNearlyAsFastAsTheBestKAndSchedule) {
  for (const double pass : {0.002, 0.025}) {
    for (const Tiles& tiles : kTiles) {
      for (const double round_trip_ms : {0.0, 5.0, 50.0}) {
        for (const double acceptance : {0.5, 0.7, 0.8, 0.9}) {
          ExpectNearlyBest({.round_trip = round_trip_ms / 1000,
                            .acceptance = acceptance,
                            .pass = pass * (1 - tiles.row),
                            .row = pass * tiles.row,
                            .tile = pass * tiles.tile,
                            .tile_rows = tiles.rows,
                            .draft = pass / 8});
        }
      }
    }
  }
}

// A drafter that takes longer than passes never pays, and one that takes long
// after it was left alone hardly does: trying it has its share of the time.
TEST(SlowDrafterTest, AutoIsNearlyAsFastAsNoDraftsInTheLongRun) {
  for (const Schedule schedule : {Schedule::kAuto, Schedule::kSequential}) {
    for (const double draft : {0.05, 0.3, 1.5}) {
      for (const double first_draft : {0.0, 0.3, 1.5}) {
        const TimedWorld world = {.round_trip = 0.0005,
                                  .acceptance = 0.7,
                                  .draft = draft,
                                  .first_draft = first_draft};
        TimedRounds rounds(world, {.is_by_control = true, .schedule = schedule},
                           /*seed=*/2);
        rounds.Run(4000);
        EXPECT_GE(rounds.Run(20000), kLeastOfNone * RateOf(world, {.k = 0}))
            << world.Name() << ", after none " << first_draft;
      }
    }
  }
}

// A row costs a twelfth of a pass without rows: those of eight users, two each,
// cost more than it.
constexpr double kDearRow = 0.002;

TEST(DearRowsGridTest, AutoIsNearlyAsFastAsTheBestKAndSchedule) {
  ExpectNearlyBestInCells({.row = kDearRow});
  ExpectNearlyBestInCells({.row = kDearRow, .num_users = 8});
}

TEST(CrowdGridTest, AutoIsNearlyAsFastAsTheBestKAndSchedule) {
  ExpectNearlyBestInCells({.num_users = kCrowd});
}

TEST(DearCrowdGridTest, AutoIsNearlyAsFastAsTheBestKAndSchedule) {
  ExpectNearlyBestInCells({.row = kDearRow, .num_users = kCrowd});
}

INSTANTIATE_TEST_SUITE_P(Users, ScheduleGridTest, ::testing::Values(1, 8));

}  // namespace
}  // namespace outrider
