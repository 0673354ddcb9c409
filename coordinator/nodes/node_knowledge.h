// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_NODE_KNOWLEDGE_H_
#define OUTRIDER_COORDINATOR_NODES_NODE_KNOWLEDGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/wire/expected_weights.h"
#include "core/wire/node_description.h"

namespace outrider {

enum class NodeState {
  kReady,     // takes new sessions
  kNotReady,  // does not answer, or drains
  kRefused,   // answers, and does not fit
  kLeaving,   // gone from its name: only its sessions are still there
};

inline absl::Status NotAskedYet() {
  return absl::UnavailableError("not asked yet");
}

// What is known of one node. A plain value: its owner guards it.
struct NodeKnowledge {
  std::string name = {};     // HOST:PORT as the flag has it
  std::string address = {};  // for logs only
  bool is_listed = true;     // its name has this address
  // What the node answered to the last Describe.
  absl::StatusOr<NodeDescription> answer = NotAskedYet();
  // Whether new sessions may come, and if not, why.
  absl::Status fitness = NotAskedYet();

  bool ready() const { return fitness.ok(); }
  NodeState state() const;
};

// What a coordinator wants of its verifiers.
struct VerifierTerms {
  std::string tokenizer_hash = {};  // its own; empty: it has none
  ExpectedWeights weights = {};
};

// These find the fitness anew, from all answers; what changes is logged.
// Verifiers of different weights may be ready side by side, as in a roll-out: a
// session stays with those of one kind (SessionVerifier). Their tokenizer is
// one: that of the terms, or else `tokenizer_hash`, the one in use, which stays
// as long as some verifier has it, then becomes that of the first that is
// otherwise fit.
void AssessVerifiers(absl::Span<NodeKnowledge* const> verifiers,
                     const VerifierTerms& terms, std::string& tokenizer_hash);
// Drafters must fit this verifier; null: none is ready.
void AssessDrafters(absl::Span<NodeKnowledge* const> drafters,
                    const NodeDescription* verifier);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_NODE_KNOWLEDGE_H_
