// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_REPREFILL_BUDGET_H_
#define OUTRIDER_CORE_ENGINE_REPREFILL_BUDGET_H_

#include <algorithm>
#include <chrono>

namespace outrider {

// When a node may be sent the next stream that moves to it, and whose text it
// has to take in as a whole: these together take a quarter of its time, at
// most, whichever coordinators send them. What is computed while nobody else is
// there is taken from nobody. The node tells it to whoever sends such a stream,
// who keeps to it; what comes unasked, such as a stream that its client
// resumes, spends nothing. Not thread-safe.
class ReprefillBudget {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  // The node has ended with one that it began with then, and that has taken so
  // much of others' time.
  void Spend(Duration time, Clock::time_point begun) {
    if (time == Duration::zero()) return;
    opens_at_ = std::max(opens_at_, begun) + kShare * time;
  }
  Clock::time_point opens_at() const { return opens_at_; }

 private:
  static constexpr int kShare = 4;  // of the time, one part is for these

  Clock::time_point opens_at_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_REPREFILL_BUDGET_H_
