// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/node_choice.h"

#include <cstdint>
#include <tuple>

#include "core/session/siphash.h"

namespace outrider {

std::optional<size_t> ChooseNode(const SessionId& session,
                                 absl::Span<const NodeCandidate> candidates) {
  std::optional<size_t> chosen;
  std::tuple<bool, int, uint64_t> lowest;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const NodeCandidate& node = candidates[i];
    const std::tuple rank(node.is_doubtful, node.num_sessions,
                          SipHash24(session.bytes, node.address));
    if (chosen.has_value() && lowest <= rank) continue;
    chosen = i;
    lowest = rank;
  }
  return chosen;
}

}  // namespace outrider
