// SPDX-License-Identifier: Apache-2.0
#include "core/node/simulation.h"

#include <CLI/CLI.hpp>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "core/base/flag_checks.h"
#include "core/model/simulated_lm.h"

namespace outrider {
namespace {

std::chrono::nanoseconds Milliseconds(double value) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::milli>(value));
}

}  // namespace

void AddSimulationFlags(CLI::App& app, CLI::Option* model,
                        SimulationFlags& flags) {
  app.option_defaults()->group("Simulation");
  CLI::Option* const simulate =
      app.add_flag("--simulate", flags.enabled,
                   "run a timing model in place of weights: real messages, the "
                   "exact law of a table; prompts are token ids")
          ->excludes(model);
  app.add_option("--simulate-pass-ms", flags.pass_ms,
                 "with --simulate: time of a forward pass")
      ->check(NumberIn(0, 1e5))
      ->needs(simulate);
  app.add_option("--simulate-row-ms", flags.row_ms,
                 "with --simulate: time that each token of the pass adds")
      ->check(NumberIn(0, 1e4))
      ->needs(simulate);
  app.add_option("--simulate-vocabulary", flags.vocab_size,
                 "with --simulate: tokens; the same on both nodes")
      ->check(WholeNumberIn(SimulatedLm::kMinVocabSize, 1 << 20))
      ->needs(simulate)
      ->capture_default_str();
  app.option_defaults()->group("Options");
  app.parse_complete_callback([model, simulate] {
    if (model->count() == 0 && simulate->count() == 0) {
      throw CLI::RequiredError("--model");
    }
  });
}

void AddSimulatedGuesses(CLI::App& app, SimulationFlags& flags) {
  app.add_option("--simulate-acceptance", flags.acceptance,
                 "with --simulate: probability that a simulated verifier "
                 "accepts a draft token")
      ->group("Simulation")
      ->check(NumberIn(0, 1))
      ->needs(app.get_option("--simulate"))
      ->capture_default_str();
  app.add_option("--simulate-outcome-hit", flags.outcome_hit,
                 "with --simulate: share of its refused draft tokens whose "
                 "replacement the drafter ranks next")
      ->group("Simulation")
      ->check(NumberIn(0, 1))
      ->needs(app.get_option("--simulate"))
      ->capture_default_str();
}

std::unique_ptr<CausalLm> MakeSimulatedModel(const SimulationFlags& flags,
                                             const std::string& name) {
  return std::make_unique<SimulatedLm>(
      SimulatedLm::Options{.name = name,
                           .pass_time = Milliseconds(flags.pass_ms),
                           .row_time = Milliseconds(flags.row_ms),
                           .acceptance = flags.acceptance,
                           .outcome_hit = flags.outcome_hit,
                           .vocab_size = flags.vocab_size});
}

NodeDescription DescribeSimulated(const ModelInfo& info) {
  return {.model_name = info.name,
          .weights_hash = info.weights_hash,
          .tokenizer_hash = absl::StrCat("simulated-", info.vocab_size),
          .vocab_size = info.vocab_size,
          .eos_ids = info.eos_ids,
          .context_length = info.context_length,
          .dtype = info.dtype,
          .device = info.device,
          .is_simulated = true,
          .numerics = info.numerics};
}

}  // namespace outrider
