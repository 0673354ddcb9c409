// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_REPREFILL_BUDGET_H_
#define OUTRIDER_CORE_ENGINE_REPREFILL_BUDGET_H_

#include <algorithm>
#include <chrono>

namespace outrider {

// When a node may be sent the next text of a stream that has begun, which it
// has to take in as a whole: those streams together take a quarter, at most, of
// the time that others would have had, whichever coordinators send them. What
// is computed while no other work is there takes nothing from anybody. The node
// tells it with each answer, and who sends them keeps to it. Not thread-safe.
class ReprefillBudget {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  // The node has ended with one that was submitted then, after it has taken so
  // much of others' time. Many may come unasked, such as streams that clients
  // resume: who asks waits for a bounded time all the same.
  void Spend(Duration time, Clock::time_point submitted,
             Clock::time_point now) {
    if (time == Duration::zero()) return;
    const Clock::time_point due =
        std::max(opens_at_, submitted) + kShare * time;
    opens_at_ = std::max(opens_at_, std::min(due, now + kLongest * time));
  }
  Clock::time_point opens_at() const { return opens_at_; }

 private:
  static constexpr int kShare = 4;     // of the time, one part is for these
  static constexpr int kLongest = 32;  // eight such texts: for as many senders

  Clock::time_point opens_at_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_REPREFILL_BUDGET_H_
