// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_SIMULATION_H_
#define OUTRIDER_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/cluster.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/fault.h"
#include "tests/simulation/node_coverage.h"
#include "tests/simulation/weak_protocol.h"

namespace outrider::testing {

// One run of the whole protocol in virtual time, on one thread: a few clients,
// a coordinator's part of their sessions, a drafter, verifiers. All that is
// drawn depends on the seed alone.
struct SimulationOptions {
  uint64_t seed = 0;
  std::vector<Fault> faults = {};
  WeakProtocol protocol = {};
  Mistake mistake = Mistake::kNone;
  bool has_room = false;    // for all sessions, which some seeds have not
  bool has_poison = false;  // one client's text takes verifiers down
};

struct SimulationResult {
  std::string problem = {};  // the first that was found; empty: none
  SimulationStats stats = {};
  Coverage coverage = {};  // of coordinators
  NodeCoverage node_coverage = {};
};

// Looks, all the time, at each stream (contiguous, nothing twice, equal to
// plain decoding where that is promised), at logs, coins, verdicts and blocks;
// at the end whether one sequential execution explains each stream, all have
// ended and all memory is free.
SimulationResult Simulate(const SimulationOptions& options);

// The faults that `seed` draws: so many times as many as usual.
SimulationOptions OptionsOf(uint64_t seed, int multiple = 1);

// A seed that fails, with as few of its faults as still make it fail.
std::string Explain(SimulationOptions options);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_SIMULATION_H_
