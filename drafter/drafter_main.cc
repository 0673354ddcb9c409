// SPDX-License-Identifier: Apache-2.0
// outrider-drafter: guesses the next tokens with a small model, or by n-grams.
#include <CLI/CLI.hpp>
#include <memory>

#include "core/node/node_program.h"
#include "core/torch_model/torch_causal_lm.h"
#include "drafter/drafter_service.h"
#include "drafter/load_drafter.h"
#include "drafter/measure_draft.h"

namespace outrider {
namespace {

absl::StatusOr<std::unique_ptr<CausalLm>> LoadWeights(const NodeFlags& flags) {
  return LoadTorchCausalLm({.model_directory = flags.model,
                            .device = flags.device,
                            .dtype = flags.dtype,
                            .kernels = flags.kernels,
                            .num_threads = flags.NumThreads()});
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  std::string strategy = "model";
  return outrider::RunNodeProgram(
      {.role = "drafter",
       .method = "Draft",
       .about = "outrider-drafter serves DrafterService: it guesses the next "
                "tokens.",
       .listen = "127.0.0.1:7001",
       .example = "--model models/demo-draft --listen 127.0.0.1:7001",
       .version = OUTRIDER_VERSION,
       .add_flags =
           [&](CLI::App& app, outrider::NodeFlags& flags) {
             outrider::AddDrafterFlags(app, flags, strategy);
           },
       .needs_weights = [&] { return strategy == "model"; },
       .load =
           [&](const outrider::NodeFlags& flags) {
             return LoadDrafter(strategy, flags, outrider::LoadWeights);
           },
       .measure = outrider::PrintDraftMeasurement,
       .make_service = outrider::MakeDrafterService},
      argc, argv);
}
