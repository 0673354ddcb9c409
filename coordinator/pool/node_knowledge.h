// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_NODE_KNOWLEDGE_H_
#define OUTRIDER_COORDINATOR_POOL_NODE_KNOWLEDGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/wire/model_identity.h"
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
  std::string address = {};  // for logs only
  bool is_listed = true;     // its name has this address
  // What the node answered to the last Describe.
  absl::StatusOr<NodeDescription> answer = NotAskedYet();
  // Whether new sessions may come, and if not, why.
  absl::Status fitness = NotAskedYet();

  bool ready() const { return fitness.ok(); }
  NodeState state() const;
};

// These find the fitness anew, from all answers; what changes is logged.
// Verifiers must agree on their weights and number type (faults.md rule 17):
// `model`, the one in use, stays as long as some verifier has it, then becomes
// that of the first otherwise fit. `tokenizer_hash` is the coordinator's;
// empty: it has none.
void AssessVerifiers(absl::Span<NodeKnowledge* const> verifiers,
                     const std::string& tokenizer_hash, ModelIdentity& model);
// Drafters must fit this verifier; null: none is ready.
void AssessDrafters(absl::Span<NodeKnowledge* const> drafters,
                    const NodeDescription* verifier);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_NODE_KNOWLEDGE_H_
