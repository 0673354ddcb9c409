// SPDX-License-Identifier: Apache-2.0
// outrider-verifier: scores drafts with the target model.
#include <iterator>

#include "core/base/build_version.h"
#include "core/node/describe_model.h"
#include "core/node/measure.h"
#include "core/node/node_program.h"
#include "core/torch_model/open_torch_model.h"
#include "verifier/verifier_service.h"

namespace outrider {
namespace {

absl::StatusOr<LoadedModel> Load(const NodeFlags& flags) {
  absl::StatusOr<LoadedModel> loaded =
      LoadModel(flags, "simulated-target", OpenTorchCausalLm);
  if (!loaded.ok()) return loaded;
  if (!flags.simulation.enabled) WarnOfEndlessTexts(loaded->description);
  loaded->description.reply_formats = {std::begin(kReplyFormats),
                                       std::end(kReplyFormats)};
  loaded->description.rules = {RuleKind::kRejection, RuleKind::kBlock,
                               RuleKind::kCoupled};
  return loaded;
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  return outrider::RunNodeProgram(
      {.role = "verifier",
       .method = "Verify",
       .about = "outrider-verifier serves VerifierService: it scores drafts "
                "with the target model.",
       .listen = "127.0.0.1:7002",
       .example = "--model models/demo-target --listen 127.0.0.1:7002",
       .version = outrider::kBuildVersion,
       .weights_check = [] { return outrider::CheckTorchModel; },
       .load = outrider::Load,
       .measure = outrider::PrintModelMeasurement,
       .make_service = outrider::MakeVerifierService,
       .max_request_bytes = outrider::MaxVerifyRequestBytes},
      argc, argv);
}
