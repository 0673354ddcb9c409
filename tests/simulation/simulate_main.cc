// SPDX-License-Identifier: Apache-2.0
// simulate --seeds 10000: many runs; simulate --seed 17: one, again; with
// --faults 3: under three times as many faults. A seed that fails is printed
// with as few faults as still make it fail.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>

#include "core/base/parse_flags.h"
#include "tests/simulation/simulation.h"

int main(int argc, char** argv) {
  using namespace outrider::testing;  // NOLINT(google-build-using-namespace)
  CLI::App app("The protocol in virtual time, with faults.", "simulate");
  uint64_t first = 0;
  uint64_t count = 1;
  app.add_option("--seed", first, "The first seed.");
  app.add_option("--seeds", count, "How many, from the first one on.");
  int multiple = 1;
  app.add_option("--faults", multiple, "So many times as many faults as usual.")
      ->check(CLI::Range(1, 100));
  if (const auto status = outrider::ParseFlags(app, argc, argv)) return *status;

  uint64_t num_failed = 0;
  Coverage coverage;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const SimulationOptions options = OptionsOf(seed, multiple);
    const SimulationResult result = Simulate(options);
    coverage.Add(result.coverage);
    if (result.problem.empty()) continue;
    ++num_failed;
    std::cout << Explain(options) << std::flush;
  }
  std::cout << coverage.ToString() << count << " seeds, " << num_failed
            << " failed\n";
  return num_failed == 0 ? 0 : 1;
}
