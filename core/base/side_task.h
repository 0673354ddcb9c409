// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_SIDE_TASK_H_
#define OUTRIDER_CORE_BASE_SIDE_TASK_H_

#include <atomic>
#include <coroutine>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/task.h"

namespace outrider {

// A task that runs beside its owner, who looks in from time to time. It begins
// at once. What it refers to must outlive it, and it must be done before this
// object goes: co_await Join() waits for that. Its owner is one coroutine.
template <typename T>
class SideTask {
 public:
  explicit SideTask(Task<T> task) { Run(std::move(task), *this); }
  SideTask(const SideTask&) = delete;
  SideTask& operator=(const SideTask&) = delete;
  ~SideTask() { OUTRIDER_CHECK(is_done()) << "a side task outlives its owner"; }

  bool is_done() const {
    return state_.load(std::memory_order_acquire) == Done();
  }
  // What it yielded; it is done, and this is asked once.
  T Take() {
    OUTRIDER_CHECK(is_done());
    return *std::move(result_);
  }

  struct Joiner {
    SideTask& side;
    bool await_ready() const noexcept { return side.is_done(); }
    bool await_suspend(std::coroutine_handle<> waiter) noexcept {
      void* running = nullptr;
      return side.state_.compare_exchange_strong(running, waiter.address(),
                                                 std::memory_order_acq_rel);
    }
    void await_resume() const noexcept {}
  };
  // co_await Join() goes on when the task is done.
  Joiner Join() { return {*this}; }

 private:
  // An address that no coroutine has.
  void* Done() const { return const_cast<SideTask*>(this); }

  static internal::Detached Run(Task<T> task, SideTask& side) {
    {
      Task<T> own = std::move(task);  // ends before anybody is told
      side.result_.emplace(co_await own);
    }
    void* const waiter =
        side.state_.exchange(side.Done(), std::memory_order_acq_rel);
    // `side` may be gone from here on, unless somebody waits.
    if (waiter != nullptr) {
      std::coroutine_handle<>::from_address(waiter).resume();
    }
  }

  std::optional<T> result_;
  // Null while it runs alone, the waiter's address, or Done().
  std::atomic<void*> state_ = nullptr;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_SIDE_TASK_H_
