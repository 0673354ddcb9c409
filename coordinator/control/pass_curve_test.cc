// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/pass_curve.h"

#include <initializer_list>
#include <random>

#include "gtest/gtest.h"

namespace outrider {
namespace {

// AVX2 kernels take five rows by the tile.
double Staircase(int num_rows) {
  const int num_more_tiles = (num_rows - 1) / 5;
  return 1 + 0.0875 * (num_rows - 1) + 0.3125 * num_more_tiles;
}
double Line(int num_rows) { return 1 + 0.1 * (num_rows - 1); }

class PassCurveTest : public ::testing::Test {
 protected:
  using Truth = double (*)(int num_rows);

  // So many passes of each, each a tenth quicker or slower.
  void Run(Truth truth, std::initializer_list<int> rows, int num_passes,
           double load = 1) {
    for (const int num_rows : rows) {
      for (int i = 0; i < num_passes; ++i) {
        curve_.Learn(num_rows, /*sharing=*/1,
                     load * truth(num_rows) * noise_(generator_),
                     /*num_sessions=*/1);
      }
    }
  }
  double Ratio(int num_rows, int to) const {
    return curve_.Seconds(num_rows) / curve_.Seconds(to);
  }

  PassCurve curve_;

 private:
  std::mt19937 generator_{1};
  std::uniform_real_distribution<double> noise_{0.9, 1.1};
};

TEST_F(PassCurveTest, LearnsAStaircase) {
  for (int i = 0; i < 20; ++i) Run(Staircase, {1, 4, 5, 6, 9}, 3);
  for (const int num_rows : {1, 4, 5, 6, 9}) {
    EXPECT_NEAR(Ratio(num_rows, 1), Staircase(num_rows), 0.06) << num_rows;
  }
}

// A number that does not pay is tried for a few rounds now and then.
TEST_F(PassCurveTest, AFewPassesShowAStep) {
  Run(Staircase, {5, 1, 5, 3, 4}, 12);
  Run(Staircase, {4}, 200);
  EXPECT_LT(Ratio(6, 4), 1.25);
  Run(Staircase, {6}, 5);
  EXPECT_NEAR(Ratio(6, 4), Staircase(6) / Staircase(4), 0.1);
  Run(Staircase, {4}, 200);
  EXPECT_NEAR(Ratio(6, 4), Staircase(6) / Staircase(4), 0.1);
}

TEST_F(PassCurveTest, FollowsALoadWithin50RoundsAtAllNumbersOfRows) {
  for (const double load : {4.0, 0.5, 1.0}) {
    for (int i = 0; i < 5; ++i) Run(Staircase, {1, 5, 3, 6}, 3);
    Run(Staircase, {4}, 100);
    Run(Staircase, {4}, 50, load);
    EXPECT_NEAR(curve_.Seconds(4), load * Staircase(4), 0.1 * load) << load;
    for (const int num_rows : {1, 3, 5, 6}) {
      EXPECT_NEAR(curve_.Seconds(num_rows), load * Staircase(num_rows),
                  0.12 * load * Staircase(num_rows))
          << num_rows << " rows, load " << load;
    }
    curve_ = {};
  }
}

TEST_F(PassCurveTest, FollowsALoadWhereNothingElseWasSeenForLong) {
  Run(Line, {1, 5}, 10);
  Run(Line, {5}, 1000000);
  Run(Line, {5}, 50, 4);
  EXPECT_NEAR(curve_.Seconds(5), 4 * Line(5), 0.4 * Line(5));
  EXPECT_LE(curve_.Seconds(1), curve_.Seconds(5));
  const double before = curve_.Seconds(5);
  Run([](int) { return 8 * Line(5); }, {6}, 2);
  EXPECT_NEAR(curve_.Seconds(5), before, 0.1 * before);
}

TEST_F(PassCurveTest, AStepThatIsSeenForTheFirstTimeIsNoLoad) {
  for (int i = 0; i < 10; ++i) Run(Line, {1, 3, 5}, 3);
  Run(Line, {4}, 50);
  const double before = curve_.Seconds(4);
  curve_.Learn(6, /*sharing=*/1, 2 * before, /*num_sessions=*/1);
  EXPECT_NEAR(curve_.Seconds(4), before, 0.005 * before);
}

// Each of its sessions has so many rounds, and all see the same load.
TEST_F(PassCurveTest, RemembersByTheRoundsOfASession) {
  const auto run = [](int num_passes, double load, PassCurve& curve) {
    for (int i = 0; i < num_passes; ++i) curve.Learn(5, /*sharing=*/1, load, 8);
  };
  run(1000, 1, curve_);
  run(32, 2, curve_);
  EXPECT_LT(curve_.Seconds(5), 1.4);
  run(8 * 50, 2, curve_);
  EXPECT_GT(curve_.Seconds(5), 1.9);
}

// Eight with five rows each, and then with one, which shows what a row costs.
TEST_F(PassCurveTest, WhatWasSeenStaysWhenTheCostOfOthersRowsIsFoundOut) {
  constexpr int kNumSessions = 8;
  const auto truth = [](int num_rows) {
    return 0.02 + 0.002 * kNumSessions * num_rows;
  };
  for (const int num_rows : {5, 1, 5}) {
    for (int i = 0; i < 10 * kNumSessions; ++i) {
      curve_.Learn(num_rows, kNumSessions, truth(num_rows), kNumSessions);
    }
  }
  for (const int num_rows : {1, 5, 9}) {
    EXPECT_NEAR(curve_.Seconds(num_rows), truth(num_rows),
                0.05 * truth(num_rows))
        << num_rows;
  }
}

TEST_F(PassCurveTest, OnePassSaysNothingOfRows) {
  curve_.Learn(5, 1, 0.02, 1);
  for (const int num_rows : {1, 5, 17, PassCurve::kMostRows}) {
    EXPECT_DOUBLE_EQ(curve_.Seconds(num_rows), 0.02) << num_rows;
  }
}

TEST_F(PassCurveTest, ALineStandsInForMoreRowsThanWereSeen) {
  for (int i = 0; i < 10; ++i) Run(Line, {1, 3, 5}, 3);
  EXPECT_NEAR(Ratio(9, 1), Line(9), 0.15);
  EXPECT_NEAR(Ratio(17, 1), Line(17), 0.3);
}

// They do, however steep it seems to be.
TEST_F(PassCurveTest, FewerRowsThanWereSeenStillReadTheWeights) {
  const Truth steep = [](int num_rows) { return num_rows - 7.9; };
  for (int i = 0; i < 10; ++i) Run(steep, {9, 8}, 3);
  EXPECT_GT(curve_.Seconds(1), 0.1);
}

// Where four rows are as cheap as three, only passes of four rows can show it.
TEST_F(PassCurveTest, BetweenTwoNumbersAStepIsTakenToBeAtTheSecond) {
  const Truth tiles = [](int num_rows) -> double {
    const int num_more_tiles = (num_rows - 1) / 4;
    return 1 + num_more_tiles;
  };
  for (int i = 0; i < 10; ++i) Run(tiles, {1, 3, 5}, 3);
  EXPECT_LT(Ratio(4, 3), 1.1);
  EXPECT_GT(Ratio(5, 3), 1.8);
}

TEST_F(PassCurveTest, WhatWasSeenLongAgoIsNotBelievedForEver) {
  for (int i = 0; i < 10; ++i) Run(Line, {1, 5}, 3);
  Run([](int) { return 4.0; }, {6}, 5);
  Run(Line, {5}, 100);
  EXPECT_GT(Ratio(6, 5), 1.5);
  for (int i = 0; i < 100; ++i) Run(Line, {1, 5}, 50);
  EXPECT_NEAR(Ratio(6, 5), Line(6) / Line(5), 0.1);
}

TEST_F(PassCurveTest, NorWhatWasSeenOften) {
  for (int i = 0; i < 100; ++i) {
    Run(Line, {1, 6}, 3);
    Run([](int) { return 4.0; }, {5}, 20);
  }
  EXPECT_GT(Ratio(5, 6), 2);
  for (int i = 0; i < 50; ++i) Run(Line, {1, 6}, 50);
  EXPECT_LT(Ratio(5, 6), 1.3);
}

TEST_F(PassCurveTest, APassThatStoodStillMovesLittle) {
  for (int i = 0; i < 10; ++i) Run(Staircase, {1, 5}, 3);
  Run(Staircase, {4}, 50);
  const double before = curve_.Seconds(4);
  curve_.Learn(4, 1, 1000, 1);
  EXPECT_LT(curve_.Seconds(4), 1.15 * before);
  EXPECT_NEAR(Ratio(5, 1), Staircase(5), 0.1);
}

TEST_F(PassCurveTest, RowsWithoutEndAndNodesThatTakeNoTime) {
  curve_.Learn(1000, 1, 0, 1);
  EXPECT_TRUE(curve_.has_learned());
  EXPECT_LE(curve_.Seconds(1), 1e-6);
  EXPECT_EQ(curve_.Seconds(1000), curve_.Seconds(PassCurve::kMostRows));
}

}  // namespace
}  // namespace outrider
