// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_RELEASED_OPENINGS_H_
#define OUTRIDER_CORE_SESSION_RELEASED_OPENINGS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "core/base/session_id.h"

namespace outrider {

// Openings that were given up before they were answered. One that arrives, or
// comes out of a queue, after its release would open a session that nobody
// releases again. Remembers the last kCapacity sessions: what is forgotten
// costs memory for one lease, no more.
class ReleasedOpenings {
 public:
  static constexpr size_t kCapacity = 4096;

  void Add(const SessionId& session, uint64_t step) {
    const auto [it, is_new] = last_step_.try_emplace(session, step);
    it->second = std::max(it->second, step);
    if (!is_new) return;
    order_.push_back(session);
    if (order_.size() <= kCapacity) return;
    last_step_.erase(order_.front());
    order_.pop_front();
  }
  // Whether an opening with this step is one of them.
  bool Covers(const SessionId& session, uint64_t step) const {
    const auto it = last_step_.find(session);
    return it != last_step_.end() && step <= it->second;
  }

 private:
  absl::flat_hash_map<SessionId, uint64_t> last_step_;
  std::deque<SessionId> order_;  // longest known first
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_RELEASED_OPENINGS_H_
