// SPDX-License-Identifier: Apache-2.0
// Nothing is lost, doubled or wrong, whatever the network and the processes do.
#include "tests/simulation/simulation.h"

#include <iostream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kNumSeeds = 500;

// The seeds together have each answer to a session in each of its states, and
// at nodes each message of a session in each of theirs.
TEST(SimulationTest, EveryStreamIsWholeAndThatOfPlainDecoding) {
  SimulationStats sum;
  Coverage coverage;
  NodeCoverage node_coverage;
  for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    const SimulationOptions options = OptionsOf(seed);
    const SimulationResult result = Simulate(options);
    ASSERT_EQ(result.problem, "") << Explain(options);
    sum.num_rounds += result.stats.num_rounds;
    sum.num_accepted += result.stats.num_accepted;
    sum.num_misses += result.stats.num_misses;
    sum.num_reused += result.stats.num_reused;
    sum.num_draft_failures += result.stats.num_draft_failures;
    sum.num_hits += result.stats.num_hits;
    sum.num_given_up += result.stats.num_given_up;
    sum.num_lies += result.stats.num_lies;
    sum.num_resumes += result.stats.num_resumes;
    sum.num_refusals += result.stats.num_refusals;
    sum.num_preempted += result.stats.num_preempted;
    sum.num_moves += result.stats.num_moves;
    sum.num_drafter_moves += result.stats.num_drafter_moves;
    sum.num_begun_anew += result.stats.num_begun_anew;
    sum.num_poisoned += result.stats.num_poisoned;
    coverage.Add(result.coverage);
    node_coverage.Add(result.node_coverage);
  }
  std::cout << coverage.ToString() << node_coverage.ToString();
  EXPECT_THAT(coverage.Missing(), IsEmpty());
  EXPECT_THAT(node_coverage.Wrong(), IsEmpty());
  // What was not tried was not tested.
  EXPECT_GT(sum.num_accepted, static_cast<int64_t>(10 * kNumSeeds));
  EXPECT_GT(sum.num_misses, 0);
  EXPECT_GT(sum.num_reused, 0);
  EXPECT_GT(sum.num_draft_failures, 0);
  EXPECT_GT(sum.num_hits, static_cast<int64_t>(kNumSeeds));
  EXPECT_GT(sum.num_given_up, 0);
  EXPECT_GT(sum.num_lies, 0);
  EXPECT_GT(sum.num_resumes, 0);
  EXPECT_GT(sum.num_refusals, 0);
  EXPECT_GT(sum.num_preempted, 0);
  EXPECT_GT(sum.num_moves, 0);
  EXPECT_GT(sum.num_drafter_moves, 0);
  EXPECT_GT(sum.num_begun_anew, 0);
  EXPECT_GT(sum.num_poisoned, 0);
}

TEST(SimulationTest, ASeedGivesTheSameRunAgain) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const SimulationStats once = Simulate(OptionsOf(seed)).stats;
    const SimulationStats again = Simulate(OptionsOf(seed)).stats;
    EXPECT_EQ(once.num_messages, again.num_messages) << seed;
    EXPECT_EQ(once.num_rounds, again.num_rounds) << seed;
    EXPECT_EQ(once.num_accepted, again.num_accepted) << seed;
  }
}

// Misses heal what a wrong cache would break: without faults there are none.
TEST(SimulationTest, WithoutFaultsAndWithRoomNothingIsSentTwice) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const SimulationResult result = Simulate({.seed = seed, .has_room = true});
    EXPECT_EQ(result.problem, "") << seed;
    EXPECT_EQ(result.stats.num_resumes, 0) << seed;
    EXPECT_EQ(result.stats.num_draft_failures, 0) << seed;
    EXPECT_EQ(result.stats.num_misses, 0) << seed;
  }
}

}  // namespace
}  // namespace outrider::testing
