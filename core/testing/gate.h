// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_GATE_H_
#define OUTRIDER_CORE_TESTING_GATE_H_

#include <coroutine>
#include <utility>

namespace outrider::testing {

// One coroutine awaits it and goes on, inside Open, when the test opens it.
class Gate {
 public:
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() const {}
  void Open() { std::exchange(waiter_, {}).resume(); }
  bool has_waiter() const { return static_cast<bool>(waiter_); }

 private:
  std::coroutine_handle<> waiter_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_GATE_H_
