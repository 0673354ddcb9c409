// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_VERIFIER_BOUNDS_H_
#define OUTRIDER_COORDINATOR_NODES_VERIFIER_BOUNDS_H_

#include "absl/types/span.h"
#include "coordinator/nodes/node_knowledge.h"
#include "coordinator/nodes/session_use.h"
#include "core/wire/node_description.h"

namespace outrider {

// What bounds a session of one model: each is that of the largest verifier that
// is ready, as the session goes there if it has to. One model may be served
// with contexts of several lengths, by nodes with other flags.
struct VerifierBounds {
  // A text above it is too long for the model; others have to wait for, or to
  // go to, a verifier that serves them.
  int context_length = 0;
  // These are of those that serve its needs.
  int longest_text = 0;      // that it has room for, within its context
  int max_draft_tokens = 0;  // of a round
  // The same, of all models and needs: no request has more.
  int most_draft_tokens = 0;
};

// `own` is the session's verifier. One that lacks what it needs refuses it, and
// until then has the bounds of all of its model.
VerifierBounds BoundsOf(absl::Span<const NodeKnowledge* const> verifiers,
                        const NodeDescription& own, const VerifierNeeds& needs);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_VERIFIER_BOUNDS_H_
