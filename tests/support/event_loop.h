// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_EVENT_LOOP_H_
#define OUTRIDER_TESTS_SUPPORT_EVENT_LOOP_H_

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "core/base/monotonic_clock.h"

namespace outrider::testing {

// Virtual time: what is due runs in its order, and nothing takes time but what
// is asked to. All that reads MonotonicClock on this thread sees it.
class EventLoop {
 public:
  using Clock = MonotonicClock;

  EventLoop() : shows_(now_) {}

  const Clock::time_point& now() const { return now_; }
  // What has passed since the beginning.
  Clock::duration elapsed() const { return now_ - kStart; }

  void After(Clock::duration delay, std::function<void()> event) {
    events_.emplace(std::pair(now_ + delay, num_events_++), std::move(event));
  }
  // False: nothing is left to run.
  bool RunOne() {
    if (events_.empty()) return false;
    auto first = events_.extract(events_.begin());
    now_ = std::max(now_, first.key().first);
    first.mapped()();
    return true;
  }
  // Nothing runs for so long, and then all that has become due.
  void StandStill(Clock::duration time) { now_ += time; }

  struct Sleeper {
    EventLoop& loop;
    Clock::duration time;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> awaiting) const {
      loop.After(time, [awaiting] { awaiting.resume(); });
    }
    void await_resume() const noexcept {}
  };
  // co_await Sleep(time)
  Sleeper Sleep(Clock::duration time) { return {*this, time}; }

 private:
  // Far from 0, which stands for "never" here and there.
  static constexpr Clock::time_point kStart{std::chrono::hours(1)};

  Clock::time_point now_ = kStart;
  const Clock::Shows shows_;
  uint64_t num_events_ = 0;
  // They are ordered by time, and then as they were asked for.
  std::map<std::pair<Clock::time_point, uint64_t>, std::function<void()>>
      events_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_EVENT_LOOP_H_
