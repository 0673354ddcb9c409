// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/node_choice.h"

#include <cstdint>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/session/siphash.h"

namespace outrider {
namespace {

// The sessions that a node may have, the new one included, to be chosen for
// what it has cached.
int MostSessions(absl::Span<const NodeCandidate> candidates) {
  int num_nodes = 0;
  int num_sessions = 1;
  for (const NodeCandidate& node : candidates) {
    if (node.is_doubtful) continue;
    ++num_nodes;
    num_sessions += node.num_sessions;
  }
  // 5/4 of the mean, rounded up; the one with the fewest is always below.
  return num_nodes == 0
             ? 0
             : (5 * num_sessions + 4 * num_nodes - 1) / (4 * num_nodes);
}

uint64_t OrderOfSalt(absl::string_view salt, absl::string_view address) {
  return SipHash24({}, absl::StrCat(address, " ", salt));
}

}  // namespace

std::optional<size_t> ChooseNode(const SessionId& session,
                                 absl::string_view cache_salt,
                                 absl::Span<const NodeCandidate> candidates) {
  const int most = MostSessions(candidates);
  std::optional<size_t> chosen;
  std::tuple<bool, int, uint64_t> lowest;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const NodeCandidate& node = candidates[i];
    const bool may_be_home = !cache_salt.empty() && node.num_sessions < most;
    const std::tuple rank(node.is_doubtful,
                          may_be_home ? -1 : node.num_sessions,
                          may_be_home ? OrderOfSalt(cache_salt, node.address)
                                      : SipHash24(session.bytes, node.address));
    if (chosen.has_value() && lowest <= rank) continue;
    chosen = i;
    lowest = rank;
  }
  return chosen;
}

}  // namespace outrider
