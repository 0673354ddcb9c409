// SPDX-License-Identifier: Apache-2.0
#include "bench/command/deployment.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/command/file_hash.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

using client::Deployment;
using client::GenerationClient;

// Why they do not come is what the first call of those that failed last says:
// gRPC's words for the same become less with each attempt.
absl::StatusOr<Deployment> WaitForNodes(const std::string& coordinator,
                                        const TlsFiles& tls, bool needs_drafter,
                                        std::chrono::seconds longest,
                                        const Cancellation& cancellation) {
  const auto latest = std::chrono::steady_clock::now() + longest;
  GenerationClient client(coordinator, tls);
  absl::Status first_failure;
  while (true) {
    const auto deployment = client.Describe(std::chrono::seconds(2));
    if (deployment.ok()) first_failure = absl::OkStatus();
    first_failure.Update(deployment.status());
    const bool is_ready = deployment.ok() && !deployment->verifiers.empty() &&
                          (!needs_drafter || !deployment->drafters.empty());
    if (is_ready) return deployment;
    if (cancellation.cancelled()) return absl::CancelledError("interrupted");
    if (std::chrono::steady_clock::now() > latest) {
      if (!deployment.ok()) return first_failure;
      const bool lacks_verifier = deployment->verifiers.empty();
      return absl::UnavailableError(absl::StrCat(
          "the coordinator at ", coordinator, " has no ",
          lacks_verifier ? "verifier" : "drafter, and K above 0 needs one",
          ": outrider describe says more"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::string Describe(const NodeDescription& node) {
  if (node.is_simulated) {
    return absl::StrCat(node.model_name, ", simulated: no weights");
  }
  return absl::StrCat(
      node.model_name, ", ", node.dtype, " on ", node.device, ", weights ",
      node.weights_hash.empty() ? "not told" : node.weights_hash.substr(0, 12));
}

}  // namespace

absl::StatusOr<Deployment> FindNodes(const BenchOptions& options,
                                     const std::string& coordinator,
                                     std::chrono::seconds longest,
                                     const Cancellation& cancellation) {
  const int max_k = options.grid.LargestK();
  OUTRIDER_ASSIGN_OR_RETURN(
      const Deployment deployment,
      WaitForNodes(coordinator, options.flags.tls,
                   /*needs_drafter=*/options.grid.HasDrafts(), longest,
                   cancellation));
  for (const auto* nodes : {&deployment.verifiers, &deployment.drafters}) {
    for (const NodeDescription& node : *nodes) {
      if (max_k > node.max_draft_tokens) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--k ", max_k, " is more than ", node.model_name,
            " takes: ", node.max_draft_tokens, " (its --max-draft-tokens)"));
      }
    }
  }
  const bool has_text =
      std::any_of(options.prompts.begin(), options.prompts.end(),
                  [](const Prompt& prompt) { return prompt.index() == 0; });
  if (has_text && !deployment.has_tokenizer) {
    return absl::InvalidArgumentError(
        "--prompts has texts, and the coordinator has no tokenizer: give token "
        "ids, {\"prompt\": [1, 2]}");
  }
  return deployment;
}

void Bind(const Deployment& deployment, bool has_drafts,
          Configuration& configuration) {
  const auto bind = [&configuration](
                        const char* role,
                        const std::vector<NodeDescription>& nodes) {
    std::set<std::string> distinct;  // of replicas, however many are ready
    for (const NodeDescription& node : nodes) {
      distinct.insert(Describe(node));
      configuration.is_simulated |= node.is_simulated;
    }
    configuration.binding.emplace_back(role, absl::StrJoin(distinct, "; "));
  };
  bind("verifier", deployment.verifiers);
  if (has_drafts) bind("drafter", deployment.drafters);
}

void BindModels(const TrioOptions& options, Configuration& configuration,
                const Cancellation& cancellation) {
  if (options.simulation) return;
  for (const auto& [name, folder] :
       {std::pair("target's files", options.target_model),
        std::pair("draft's files", options.draft_model)}) {
    configuration.binding.emplace_back(
        name, absl::StrCat("sha256 ", HashOfModel(folder, cancellation)));
  }
}

}  // namespace outrider::bench
