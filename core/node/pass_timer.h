// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_PASS_TIMER_H_
#define OUTRIDER_CORE_NODE_PASS_TIMER_H_

#include <algorithm>
#include <chrono>

namespace outrider {

// How long the pass that runs has been seen to run, by who looks again and
// again. Between two looks it counts no more than a given time: a process that
// was stopped (a signal, a frozen group, a paused machine) has not looked
// either, and its pass has not run. Confined to one thread.
class PassTimer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit PassTimer(Clock::duration most_between_looks)
      : most_between_looks_(most_between_looks) {}

  // The time, at `now`, of the pass that began at `start` and runs.
  Clock::duration Look(Clock::time_point start, Clock::time_point now) {
    if (start != start_) {
      start_ = start;
      last_look_ = start;
      time_ = {};
    }
    time_ += std::min(now - last_look_, most_between_looks_);
    last_look_ = now;
    return time_;
  }

 private:
  const Clock::duration most_between_looks_;
  Clock::time_point start_ = {};  // of the pass that it times
  Clock::time_point last_look_ = {};
  Clock::duration time_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_PASS_TIMER_H_
