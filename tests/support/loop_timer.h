// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_LOOP_TIMER_H_
#define OUTRIDER_TESTS_SUPPORT_LOOP_TIMER_H_

#include <chrono>
#include <coroutine>
#include <memory>
#include <utility>

#include "coordinator/nodes/timer.h"
#include "tests/support/event_loop.h"

namespace outrider::testing {

// Who sleeps goes on in virtual time.
class LoopTimer final : public Timer {
 public:
  explicit LoopTimer(EventLoop& loop) : loop_(loop) {}

  Task<void> Sleep(std::chrono::milliseconds time,
                   Cancellation& cancellation) override {
    const auto nap = std::make_shared<Nap>();
    loop_.After(time, [nap] { nap->End(); });
    EventLoop& loop = loop_;
    const uint64_t registration = cancellation.OnCancel(
        [&loop, nap] { loop.After({}, [nap] { nap->End(); }); });
    co_await Awake{*nap};
    cancellation.Forget(registration);
  }

 private:
  struct Nap {
    void End() {
      if (sleeper) std::exchange(sleeper, {}).resume();
    }
    std::coroutine_handle<> sleeper = {};
  };
  struct Awake {
    Nap& nap;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> sleeper) const {
      nap.sleeper = sleeper;
    }
    void await_resume() const noexcept {}
  };

  EventLoop& loop_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_LOOP_TIMER_H_
