// SPDX-License-Identifier: Apache-2.0
// outrider-drafter: guesses the next tokens with a small model, or by n-grams.
#include <string>

#include "core/base/build_version.h"
#include "core/node/node_program.h"
#include "core/torch_model/open_torch_model.h"
#include "drafter/drafter_service.h"
#include "drafter/load_drafter.h"
#include "drafter/measure_draft.h"

int main(int argc, char** argv) {
  std::string strategy = "model";
  return outrider::RunNodeProgram(
      {.role = "drafter",
       .method = "Draft",
       .about = "outrider-drafter serves DrafterService: it guesses the next "
                "tokens.",
       .listen = "127.0.0.1:7001",
       .example = "--model models/demo-draft --listen 127.0.0.1:7001",
       .version = outrider::kBuildVersion,
       .add_flags =
           [&](CLI::App& app, outrider::NodeFlags& flags) {
             outrider::AddDrafterFlags(app, flags, strategy);
           },
       .check_flags =
           [&](const outrider::NodeFlags& flags) {
             return outrider::CheckDrafterFlags(strategy, flags);
           },
       .weights_check =
           [&] {
             return strategy == "model" ? outrider::CheckTorchModel : nullptr;
           },
       .load =
           [&](const outrider::NodeFlags& flags) {
             return LoadDrafter(strategy, flags, outrider::OpenTorchCausalLm);
           },
       .measure = outrider::PrintDraftMeasurement,
       .make_service = outrider::MakeDrafterService,
       .max_request_bytes = outrider::MaxDraftRequestBytes},
      argc, argv);
}
