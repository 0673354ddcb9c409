// SPDX-License-Identifier: Apache-2.0
// Each protocol that a model check has refuted, and each mistake with coins,
// drafts or moves, is found here too: a simulation that missed one would prove
// little.
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/simulation.h"

namespace outrider::testing {
namespace {

struct WeakCase {
  std::string id;
  WeakProtocol protocol = {};
  Mistake mistake = Mistake::kNone;
};

void PrintTo(const WeakCase& weak, std::ostream* os) { *os << weak.id; }

// The letters are those of the model check.
std::vector<WeakCase> WeakCases() {
  using Life = WeakProtocol::Life;
  const WeakProtocol nothing = {.has_step = false,
                                .has_hash = false,
                                .has_incarnation = false,
                                .life = Life::kOfSession};
  WeakProtocol truncates = nothing;
  truncates.truncates_apart = true;
  WeakProtocol by_number = truncates;
  by_number.truncates_by_number = true;
  WeakProtocol with_length = truncates;
  with_length.expects_length = true;
  const WeakProtocol step = {
      .has_hash = false, .has_incarnation = false, .late_openings_count = true};
  WeakProtocol by_session = step;
  by_session.late_openings_count = false;
  by_session.replies_match_step = false;
  return {
      {"A", by_number},
      {"B", truncates},
      {"C", with_length},
      {"D", nothing},
      {"E", step},
      {"F", by_session},
      {"G", {.has_step = false, .has_hash = false, .life = Life::kOfOpening}},
      {"H", {.has_hash = false, .life = Life::kOfOpening}},
      {"I", {.has_hash = false, .life = Life::kOfBoot}},
      {"Ve", {.has_step = false, .has_hash = false}},
      {"Vf", {.has_hash = false, .life = Life::kOfSession}},
      {"Vg", {.replies_match_step = false}},
      {"T4", {}, Mistake::kDropsDraftsByToken},
      {"M16", {}, Mistake::kRedoesRefusals},
      {"C1", {}, Mistake::kForgetsSteps},
      {"KeepsSteps", {}, Mistake::kKeepsSteps},
      {"RedrawsDrafts", {}, Mistake::kRedrawsDrafts},
      {"ShutsGates", {}, Mistake::kShutsGates},
      {"IgnoresDrains", {}, Mistake::kIgnoresDrains},
      {"CountsNoSuspects", {}, Mistake::kCountsNoSuspects},
      {"KeepsOutcomes", {}, Mistake::kKeepsOutcomes},
      {"KeepsGivenUp", {}, Mistake::kKeepsGivenUp},
      {"IsolatesNobody", {}, Mistake::kIsolatesNobody},
      {"NamesNoModel", {}, Mistake::kNamesNoModel},
  };
}

class WeakProtocolsTest : public ::testing::TestWithParam<WeakCase> {};

TEST_P(WeakProtocolsTest, IsFound) {
  constexpr uint64_t kMostSeeds = 20'000;
  for (uint64_t seed = 0; seed < kMostSeeds; ++seed) {
    SimulationOptions options = OptionsOf(seed);
    options.protocol = GetParam().protocol;
    options.mistake = GetParam().mistake;
    const SimulationResult result = Simulate(options);
    if (result.problem.empty()) continue;
    std::cout << GetParam().id << ": " << Explain(options);
    return;
  }
  FAIL() << "survives " << kMostSeeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Known, WeakProtocolsTest,
                         ::testing::ValuesIn(WeakCases()),
                         [](const auto& weak) { return weak.param.id; });

}  // namespace
}  // namespace outrider::testing
