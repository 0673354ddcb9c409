// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_MONOTONIC_CLOCK_H_
#define OUTRIDER_CORE_BASE_MONOTONIC_CLOCK_H_

#include <chrono>

namespace outrider {

// The steady clock, as whoever measures or waits in a coordinator reads it. A
// simulation shows its own time instead, on its own thread: rounds, breakers
// and paces then run in virtual time, unchanged.
class MonotonicClock {
 public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  static time_point now() {
    return shown_ == nullptr ? std::chrono::steady_clock::now() : *shown_;
  }

  // Shows `time` on this thread, for as long as it lives. Only tests do that.
  class Shows {
   public:
    explicit Shows(const time_point& time) { shown_ = &time; }
    ~Shows() { shown_ = nullptr; }
    Shows(const Shows&) = delete;
    Shows& operator=(const Shows&) = delete;
  };

 private:
  static inline thread_local const time_point* shown_ = nullptr;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_MONOTONIC_CLOCK_H_
