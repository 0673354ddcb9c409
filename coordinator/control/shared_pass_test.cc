// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/shared_pass.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace outrider {
namespace {

// What a row costs beside a pass without any: that of a large model, or of one
// whose rows are dear.
constexpr double kCheap = 0.01;
constexpr double kDear = 0.08;

class SharedPassTest : public ::testing::TestWithParam<double> {
 protected:
  // Passes of so many sessions with so many rows each, a tenth quicker or
  // slower, on a machine that is so many times as slow.
  void Run(int num_passes, int num_rows, int num_sessions, double load = 1) {
    for (int i = 0; i < num_passes * num_sessions; ++i) {
      const double seconds =
          load * 0.025 * (1 + GetParam() * num_rows * num_sessions);
      shared_.Learn(num_rows, num_sessions, seconds * noise_(generator_),
                    num_sessions);
    }
  }
  // How many times as long a pass takes where each of so many has nine rows in
  // it in place of one.
  double NineRows(int num_sessions) const {
    const auto pass = [&](int num_rows) {
      return (1 + GetParam() * num_rows) *
             shared_.Stretch(num_rows, num_sessions);
    };
    return pass(9) / pass(1);
  }
  double Truth(int num_sessions) const {
    const auto pass = [&](int num_rows) {
      return 1 + GetParam() * num_rows * num_sessions;
    };
    return pass(9) / pass(1);
  }

  SharedPass shared_;

 private:
  std::mt19937 generator_{1};
  std::uniform_real_distribution<double> noise_{0.9, 1.1};
};

TEST_P(SharedPassTest, ACrowdIsSeenForWhatItCostsAsItComes) {
  for (int i = 0; i < 50; ++i) {
    Run(10, 5, 1);
    Run(3, 1, 1);
  }
  Run(1, 5, 32);
  EXPECT_NEAR(NineRows(32) / Truth(32), 1, 0.15);
  Run(100, 5, 32);
  EXPECT_NEAR(NineRows(32) / Truth(32), 1, 0.15);
}

TEST_P(SharedPassTest, ACrowdThatWasThereFirstShowsItByTheNumbersItTries) {
  Run(3, 5, 32);
  Run(3, 1, 32);
  EXPECT_NEAR(NineRows(32) / Truth(32), 1, 0.15);
}

TEST_P(SharedPassTest, AMachineThatIsSlowForAWhileMakesNoRowDear) {
  Run(10, 5, 8);
  Run(10, 1, 8);
  Run(50, 5, 8);
  Run(50, 5, 8, /*load=*/3);
  EXPECT_NEAR(NineRows(8) / Truth(8), 1, 0.25);
}

// A virtual machine was paused in one of few rows, between passes of many.
TEST_P(SharedPassTest, APassThatStoodStillMovesLittle) {
  for (const int num_sessions : {1, 8}) {
    shared_ = {};
    for (int i = 0; i < 20; ++i) {
      Run(3, 5, num_sessions);
      Run(1, 1, num_sessions);
    }
    for (const double stall : {40.0, 1000.0}) {
      shared_.Learn(1, num_sessions, stall * 0.025, num_sessions);
      Run(2, 5, num_sessions);
      EXPECT_NEAR(NineRows(num_sessions) / Truth(num_sessions), 1, 0.25)
          << num_sessions << " sessions, " << stall;
      for (int i = 0; i < 20; ++i) {
        Run(3, 5, num_sessions);
        Run(1, 1, num_sessions);
      }
      EXPECT_NEAR(NineRows(num_sessions) / Truth(num_sessions), 1, 0.15)
          << num_sessions << " sessions, " << stall;
    }
  }
}

// Whatever a peer says, what follows are numbers.
TEST(SharedPassOfNoTimeTest, TimesOfAnySizeLeaveANumber) {
  SharedPass shared;
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> exponent(-9, 9);
  for (int i = 0; i < 100000; ++i) {
    shared.Learn(1 + static_cast<int>(generator() % 33),
                 std::pow(10, std::abs(exponent(generator))),
                 std::pow(10, exponent(generator)), 1 + i % 8);
    const double stretch = shared.Stretch(9);
    ASSERT_TRUE(std::isfinite(stretch) && stretch > 0) << i << ": " << stretch;
  }
}

TEST_P(SharedPassTest, OneByItselfIsNotStretched) {
  Run(20, 5, 1);
  Run(20, 1, 1);
  for (const int num_rows : {1, 5, 33}) {
    EXPECT_DOUBLE_EQ(shared_.Stretch(num_rows), 1) << num_rows;
  }
}

TEST_P(SharedPassTest, NothingIsKnownBeforeNumbersDiffer) {
  EXPECT_DOUBLE_EQ(shared_.Stretch(5), 1);
  Run(20, 5, 8);
  EXPECT_DOUBLE_EQ(shared_.Stretch(1), shared_.Stretch(9));
}

TEST(SharedPassOfNoTimeTest, NodesThatTakeNoTimeMakeNoSenseOfRows) {
  SharedPass shared;
  for (int i = 0; i < 10; ++i) shared.Learn(i % 2 == 0 ? 1 : 9, 8, 0, 8);
  EXPECT_DOUBLE_EQ(shared.Stretch(9), 1);
}

INSTANTIATE_TEST_SUITE_P(Rows, SharedPassTest,
                         ::testing::Values(kCheap, kDear));

}  // namespace
}  // namespace outrider
