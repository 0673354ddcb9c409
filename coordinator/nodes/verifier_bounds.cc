// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/verifier_bounds.h"

#include <algorithm>

#include "coordinator/nodes/text_room.h"
#include "core/wire/model_identity.h"

namespace outrider {

VerifierBounds BoundsOf(absl::Span<const NodeKnowledge* const> verifiers,
                        const NodeDescription& own,
                        const VerifierNeeds& needs) {
  const VerifierNeeds served = Serves(own, needs) ? needs : VerifierNeeds();
  VerifierBounds bounds;
  for (const NodeKnowledge* verifier : verifiers) {
    if (!verifier->ready()) continue;
    const NodeDescription& node = *verifier->answer;
    bounds.most_draft_tokens =
        std::max(bounds.most_draft_tokens, node.max_draft_tokens);
    const bool is_own =
        CheckSame(own.identity(), node.identity(), Sameness::kLaw).ok();
    if (!is_own) continue;
    bounds.context_length =
        std::max(bounds.context_length, node.context_length);
    if (!Serves(node, served)) continue;
    bounds.longest_text = std::max(bounds.longest_text, RoomOf(node));
    bounds.max_draft_tokens =
        std::max(bounds.max_draft_tokens, node.max_draft_tokens);
  }
  return bounds;
}

}  // namespace outrider
