// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/node_knowledge.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

absl::Status CheckAnswers(const NodeKnowledge& node) {
  if (!node.is_listed) {
    return absl::UnavailableError("its name no longer has this address");
  }
  if (node.answer.status() == NotAskedYet()) return NotAskedYet();
  // Another service, such as a drafter in a verifier's place.
  if (absl::IsUnimplemented(node.answer.status())) {
    return absl::FailedPreconditionError(
        "what answers there is another service: are --verifier and --drafter "
        "mixed up?");
  }
  if (!node.answer.ok()) {
    return absl::UnavailableError(
        absl::StrCat("does not answer: ", node.answer.status().message()));
  }
  return absl::OkStatus();
}

// But for its weights.
absl::Status CheckFit(const NodeKnowledge& verifier,
                      const std::string& tokenizer_hash) {
  OUTRIDER_RETURN_IF_ERROR(CheckAnswers(verifier));
  OUTRIDER_RETURN_IF_ERROR(CheckVerifier(*verifier.answer));
  if (!tokenizer_hash.empty() &&
      verifier.answer->tokenizer_hash != tokenizer_hash) {
    return absl::FailedPreconditionError(
        "its tokenizer is not the one of --tokenizer: pass the directory of "
        "the verifier's model");
  }
  return absl::OkStatus();
}

void SetFitness(absl::Status fitness, NodeKnowledge& node) {
  if (fitness == node.fitness) return;
  node.fitness = std::move(fitness);
  if (node.ready()) {
    const NodeDescription& description = *node.answer;
    OUTRIDER_LOG(kInfo) << node.address
                        << " is ready: " << description.model_name << ", "
                        << description.dtype << " on " << description.device;
  } else {
    OUTRIDER_LOG(kWarning) << node.address
                           << " is not used: " << node.fitness.message();
  }
}

}  // namespace

NodeState NodeKnowledge::state() const {
  if (!is_listed) return NodeState::kLeaving;
  if (ready()) return NodeState::kReady;
  return absl::IsFailedPrecondition(fitness) ? NodeState::kRefused
                                             : NodeState::kNotReady;
}

void AssessVerifiers(absl::Span<NodeKnowledge* const> verifiers,
                     const std::string& tokenizer_hash, ModelIdentity& model) {
  std::vector<absl::Status> fitness_of;
  std::vector<ModelIdentity> models;  // of those that fit
  for (const NodeKnowledge* verifier : verifiers) {
    fitness_of.push_back(CheckFit(*verifier, tokenizer_hash));
    if (!fitness_of.back().ok()) continue;
    models.push_back(verifier->answer->identity());
  }
  const bool is_gone =
      std::none_of(models.begin(), models.end(), [&](const ModelIdentity& one) {
        return CheckSame(model, one, Sameness::kLaw).ok();
      });
  if (is_gone && !models.empty()) model = models.front();
  for (size_t i = 0; i < verifiers.size(); ++i) {
    NodeKnowledge& verifier = *verifiers[i];
    if (fitness_of[i].ok()) {
      const absl::Status same =
          CheckSame(model, verifier.answer->identity(), Sameness::kLaw);
      if (!same.ok()) {
        fitness_of[i] = absl::FailedPreconditionError(absl::StrCat(
            "it is another model than the other verifiers: ", same.message()));
      }
    }
    SetFitness(std::move(fitness_of[i]), verifier);
  }
}

void AssessDrafters(absl::Span<NodeKnowledge* const> drafters,
                    const NodeDescription* verifier) {
  for (NodeKnowledge* drafter : drafters) {
    absl::Status fitness = CheckAnswers(*drafter);
    if (fitness.ok()) {
      fitness =
          verifier == nullptr
              ? absl::UnavailableError("no verifier to hold it against yet")
              : CheckPair(*drafter->answer, *verifier);
    }
    SetFitness(std::move(fitness), *drafter);
  }
}

}  // namespace outrider
