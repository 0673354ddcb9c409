// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_SIMULATION_H_
#define OUTRIDER_CORE_NODE_SIMULATION_H_

#include <memory>
#include <string>

#include "core/model/causal_lm.h"
#include "core/wire/node_description.h"

// CLI11's, by name only: its header is a large one.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace outrider {

// A node with a timing model in place of weights (SimulatedLm), as the command
// line has it. Both nodes of a pair need the same vocabulary.
struct SimulationFlags {
  bool enabled = false;
  double pass_ms = 0;
  double row_ms = 0;
  double acceptance = 1;   // a drafter's
  double outcome_hit = 0;  // a drafter's
  int vocab_size = 256;
};

// --simulate, which takes the place of `model`, and the flags that need it. One
// of the two has to be given.
void AddSimulationFlags(CLI::App& app, CLI::Option* model,
                        SimulationFlags& flags);
// Only drafters have these flags: whether their tokens are accepted, and
// whether they guess what takes the place of one that is not.
void AddSimulatedGuesses(CLI::App& app, SimulationFlags& flags);

std::unique_ptr<CausalLm> MakeSimulatedModel(const SimulationFlags& flags,
                                             const std::string& name);

// What a node with such a model says of itself: it has no tokenizer, so that it
// fits simulated nodes of the same vocabulary alone, and it is marked.
NodeDescription DescribeSimulated(const ModelInfo& info);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_SIMULATION_H_
