// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/node_choice.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "absl/strings/escaping.h"
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

// After so many computed orders the search for a salt is given up: a session's
// opening waits for it, and so do all others of the pool.
constexpr size_t kMostAsked = 8192;

bool IsFirst(size_t index, absl::string_view salt,
             absl::Span<const NodeCandidate> candidates, size_t& num_asked) {
  const uint64_t own = OrderOfSalt(salt, candidates[index].address);
  return std::all_of(candidates.begin(), candidates.end(),
                     [&](const NodeCandidate& other) {
                       ++num_asked;
                       return own <= OrderOfSalt(salt, other.address);
                     });
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

std::string DrawSalt(const Id128& secret, size_t home,
                     absl::Span<const NodeCandidate> candidates) {
  const std::string hex = absl::BytesToHexString(secret.ToBytes());
  std::string salt = hex;
  size_t num_asked = 0;
  for (int draw = 0; num_asked < kMostAsked; ++draw) {
    salt = absl::StrCat(hex, "-", draw);
    if (IsFirst(home, salt, candidates, num_asked)) break;
  }
  return salt;
}

}  // namespace outrider
