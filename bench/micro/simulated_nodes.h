// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_SIMULATED_NODES_H_
#define OUTRIDER_BENCH_MICRO_SIMULATED_NODES_H_

#include <string>

#include "bench/micro/server_process.h"
#include "core/model/simulated_lm.h"

namespace outrider {

inline constexpr int kSimulatedVocab = 256;
inline constexpr int kSimulatedContext = 1 << 20;
inline constexpr int kSimulatedDrafts = 4;  // of a round, at most

// Stands for a pass: it reads so many MiB, as it would the model's weights.
SimulatedLm::SleepUntil PassThatReads(int weights_mib);

// Nodes of the production code over a timing model. `pass` takes the place of a
// pass; by default there is nothing to compute and nothing to wait for.
Served ServeSimulatedDrafter(const std::string& listen);
Served ServeSimulatedVerifier(
    const std::string& listen, SimulatedLm::SleepUntil pass = [](auto) {});

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_SIMULATED_NODES_H_
