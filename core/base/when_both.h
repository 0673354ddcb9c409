// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_WHEN_BOTH_H_
#define OUTRIDER_CORE_BASE_WHEN_BOTH_H_

#include <atomic>
#include <coroutine>
#include <optional>
#include <utility>

#include "core/base/task.h"

namespace outrider {
namespace internal {

template <typename A, typename B>
struct Both {
  std::optional<A> first;
  std::optional<B> second;
  std::coroutine_handle<> waiter;
  // The two tasks and the awaiter; whoever is last resumes.
  std::atomic<int> unfinished = 3;

  template <typename T>
  static Detached Run(Task<T> task, std::optional<T>& result, Both& both) {
    result.emplace(co_await task);
    if (both.unfinished.fetch_sub(1) == 1) both.waiter.resume();
  }
};

template <typename A, typename B>
struct BothAwaiter {
  Task<A> a;
  Task<B> b;
  Both<A, B> both = {};

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    both.waiter = awaiting;
    Both<A, B>::Run(std::move(a), both.first, both);
    Both<A, B>::Run(std::move(b), both.second, both);
    return both.unfinished.fetch_sub(1) != 1;
  }
  std::pair<A, B> await_resume() {
    return {std::move(*both.first), std::move(*both.second)};
  }
};

}  // namespace internal

// Runs two tasks at the same time: co_await WhenBoth(a, b) yields their pair.
template <typename A, typename B>
internal::BothAwaiter<A, B> WhenBoth(Task<A> a, Task<B> b) {
  return {std::move(a), std::move(b)};
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_WHEN_BOTH_H_
