// SPDX-License-Identifier: Apache-2.0
// Nothing is lost, doubled or wrong, whatever the network and the processes do.
#include "tests/simulation/simulation.h"

#include <chrono>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

using ::testing::IsEmpty;

#ifdef OUTRIDER_FEW_SEEDS
constexpr uint64_t kNumSeeds = 40;
constexpr uint64_t kMostSeeds = kNumSeeds;
constexpr uint64_t kNumCalmSeeds = 20;
constexpr uint64_t kNumSeedsTwice = 3;
#else
constexpr uint64_t kNumSeeds = 500;
constexpr uint64_t kNumCalmSeeds = 100;
constexpr uint64_t kNumSeedsTwice = 10;
// What chance has left out of those comes in one of these.
constexpr uint64_t kMostSeeds = 3000;
#endif

// What was not tried was not tested.
struct Tried {
  void Add(const SimulationResult& result) {
    coverage.Add(result.coverage);
    node_coverage.Add(result.node_coverage);
    for (size_t i = 0; i < std::size(kCounts); ++i) {
      counts[i] += result.stats.*kCounts[i].count;
    }
  }
  // What has never happened, and what has though it cannot.
  std::vector<std::string> Lacking() const {
    std::vector<std::string> lacking = coverage.Missing();
    for (const std::string& wrong : node_coverage.Wrong()) {
      lacking.push_back(wrong);
    }
    for (size_t i = 0; i < std::size(kCounts); ++i) {
      if (counts[i] == 0) lacking.emplace_back(kCounts[i].name);
    }
    return lacking;
  }
  int64_t num_accepted() const { return counts[0]; }
  std::string ToString() const {
    std::string text =
        absl::StrCat(coverage.ToString(), node_coverage.ToString());
    for (size_t i = 0; i < std::size(kCounts); ++i) {
      absl::StrAppend(&text, kCounts[i].name, " ", counts[i], "\n");
    }
    return text;
  }

  struct Count {
    const char* name;
    int64_t SimulationStats::*count;
  };
  static constexpr Count kCounts[] = {
      {"drafts accepted", &SimulationStats::num_accepted},
      {"misses", &SimulationStats::num_misses},
      {"tokens reused", &SimulationStats::num_reused},
      {"drafts failed", &SimulationStats::num_draft_failures},
      {"drafts made ahead", &SimulationStats::num_hits},
      {"calls ahead given up", &SimulationStats::num_given_up},
      {"lies", &SimulationStats::num_lies},
      {"resumes", &SimulationStats::num_resumes},
      {"refusals", &SimulationStats::num_refusals},
      {"overdrafts", &SimulationStats::num_overdrafts},
      {"preempted", &SimulationStats::num_preempted},
      {"moves", &SimulationStats::num_moves},
      {"drafters' moves", &SimulationStats::num_drafter_moves},
      {"begun anew", &SimulationStats::num_begun_anew},
      {"poisoned", &SimulationStats::num_poisoned}};

  Coverage coverage;
  NodeCoverage node_coverage;
  int64_t counts[std::size(kCounts)] = {};
};

// The seeds together have each answer to a session in each of its states, and
// at nodes each message of a session in each of theirs.
TEST(SimulationTest, EveryStreamIsWholeAndThatOfPlainDecoding) {
  Tried tried;
  for (uint64_t seed = 0;
       seed < kNumSeeds || (seed < kMostSeeds && !tried.Lacking().empty());
       ++seed) {
    const SimulationOptions options = OptionsOf(seed);
    const SimulationResult result = Simulate(options);
    ASSERT_EQ(result.problem, "") << Explain(options);
    tried.Add(result);
  }
  std::cout << tried.ToString();
  if (kMostSeeds > kNumSeeds) {
    EXPECT_THAT(tried.Lacking(), IsEmpty());
  }
  // Speculation goes on in most runs.
  EXPECT_GT(tried.num_accepted(), static_cast<int64_t>(10 * kNumSeeds));
}

TEST(SimulationTest, ASeedGivesTheSameRunAgain) {
  for (uint64_t seed = 0; seed < kNumSeedsTwice; ++seed) {
    const SimulationStats once = Simulate(OptionsOf(seed)).stats;
    const SimulationStats again = Simulate(OptionsOf(seed)).stats;
    EXPECT_EQ(once.num_messages, again.num_messages) << seed;
    EXPECT_EQ(once.num_rounds, again.num_rounds) << seed;
    EXPECT_EQ(once.num_accepted, again.num_accepted) << seed;
  }
}

// What each has shown: a draft ahead for what the text became only after the
// call was settled; a session that drains where no other verifier has room for
// its text; a drafter that says of a fill that it holds more than it was sent.
TEST(SimulationTest, RareSeedsThatHaveFailedDoNotFailAgain) {
  for (const uint64_t seed : {3649, 21126, 6542, 13219, 26059, 32474}) {
    EXPECT_EQ(Simulate(OptionsOf(seed)).problem, "") << seed;
  }
}

// It began with a model that was there for half a minute. Who resumes it is
// told that no verifier has it, and sends the request again.
TEST(SimulationTest, AStreamWhoseModelIsGoneIsBegunAnew) {
  using std::chrono::microseconds;
  const SimulationResult result = Simulate(
      {.seed = 5944,
       .faults = {{Fault::Kind::kReplace, 2, 1'954, microseconds(31'669'749)},
                  {Fault::Kind::kCrash, 4, 94'083, microseconds(10'942'654)}}});
  EXPECT_EQ(result.problem, "");
  EXPECT_GT(result.stats.num_begun_anew, 0);
}

// What rarely meets in one run meets often.
TEST(SimulationTest, ASeedHasAsManyTimesItsFaultsAsIsAsked) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const size_t num_usual = DrawFaults(seed, /*num_nodes=*/5).size();
    EXPECT_EQ(DrawFaults(seed, /*num_nodes=*/5, /*multiple=*/3).size(),
              3 * num_usual);
  }
}

// Misses heal what a wrong cache would break: without faults there are none.
TEST(SimulationTest, WithoutFaultsAndWithRoomNothingIsSentTwice) {
  for (uint64_t seed = 0; seed < kNumCalmSeeds; ++seed) {
    const SimulationResult result = Simulate({.seed = seed, .has_room = true});
    EXPECT_EQ(result.problem, "") << seed;
    EXPECT_EQ(result.stats.num_resumes, 0) << seed;
    EXPECT_EQ(result.stats.num_draft_failures, 0) << seed;
    EXPECT_EQ(result.stats.num_misses, 0) << seed;
  }
}

}  // namespace
}  // namespace outrider::testing
