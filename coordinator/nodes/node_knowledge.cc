// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/node_knowledge.h"

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

absl::Status CheckFit(const NodeKnowledge& verifier,
                      const VerifierTerms& terms) {
  OUTRIDER_RETURN_IF_ERROR(CheckAnswers(verifier));
  OUTRIDER_RETURN_IF_ERROR(CheckVerifier(*verifier.answer));
  OUTRIDER_RETURN_IF_ERROR(
      CheckExpected(terms.weights, verifier.answer->weights_hash));
  if (!terms.tokenizer_hash.empty() &&
      verifier.answer->tokenizer_hash != terms.tokenizer_hash) {
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
                     const VerifierTerms& terms, std::string& tokenizer_hash) {
  std::vector<absl::Status> fitness_of;
  std::vector<std::string> tokenizers;  // of those that fit
  for (const NodeKnowledge* verifier : verifiers) {
    fitness_of.push_back(CheckFit(*verifier, terms));
    if (!fitness_of.back().ok()) continue;
    tokenizers.push_back(verifier->answer->tokenizer_hash);
  }
  const bool is_gone = std::find(tokenizers.begin(), tokenizers.end(),
                                 tokenizer_hash) == tokenizers.end();
  if (is_gone && !tokenizers.empty()) tokenizer_hash = tokenizers.front();
  for (size_t i = 0; i < verifiers.size(); ++i) {
    if (fitness_of[i].ok() &&
        verifiers[i]->answer->tokenizer_hash != tokenizer_hash) {
      fitness_of[i] = absl::FailedPreconditionError(
          "its tokenizer is not that of the verifiers in use: token ids would "
          "mean other text");
    }
    SetFitness(std::move(fitness_of[i]), *verifiers[i]);
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
