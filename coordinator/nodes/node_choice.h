// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_NODE_CHOICE_H_
#define OUTRIDER_COORDINATOR_NODES_NODE_CHOICE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/session_id.h"

namespace outrider {

// A node that is ready, as the choice for a new session sees it.
struct NodeCandidate {
  absl::string_view address = {};
  bool is_doubtful = false;  // lately it failed: taken where nothing else is
  int num_sessions = 0;      // of this coordinator
};

// The index of the one that takes the session: of those with the fewest
// sessions, as a round waits for a busy node, the first in the session's own
// order (rendezvous hashing, Thaler and Ravishankar 1998). That order spreads
// the sessions of coordinators that know nothing of each other, and does not
// change for a node when others come or go. Nothing where there is none.
//
// Sessions with a salt go where earlier ones have left what they begin with:
// to the first in the salt's order that has at most a quarter more sessions
// than the mean (bounded loads: Mirrokni, Thorup and Zadimoghaddam 2018).
std::optional<size_t> ChooseNode(const SessionId& session,
                                 absl::string_view cache_salt,
                                 absl::Span<const NodeCandidate> candidates);

// A salt made of `secret`, in whose order candidates[home] is the first: a
// session that comes again with it comes there, also by another coordinator.
// Such a salt is found among some hundreds of nodes; of more it may be any,
// which costs whoever comes again a prefill.
std::string DrawSalt(const Id128& secret, size_t home,
                     absl::Span<const NodeCandidate> candidates);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_NODE_CHOICE_H_
