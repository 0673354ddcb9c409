// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_MOVE_LIMIT_H_
#define OUTRIDER_COORDINATOR_NODES_MOVE_LIMIT_H_

#include <array>
#include <chrono>
#include <cstddef>

#include "core/base/monotonic_clock.h"

namespace outrider {

// Three moves a minute: a session that needs more takes its verifiers down, or
// they are down by themselves, and moving on helps neither. One a session.
class MoveLimit {
 public:
  using Clock = MonotonicClock;
  static constexpr size_t kMaxMoves = 3;
  static constexpr std::chrono::minutes kWindow{1};

  bool IsReached(Clock::time_point now) const {
    const Clock::time_point oldest = moves_[num_moves_ % kMaxMoves];
    return num_moves_ >= kMaxMoves && now - oldest < kWindow;
  }
  void Moved(Clock::time_point now) { moves_[num_moves_++ % kMaxMoves] = now; }

 private:
  std::array<Clock::time_point, kMaxMoves> moves_ = {};  // the last ones
  size_t num_moves_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_MOVE_LIMIT_H_
