// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_TASK_H_
#define OUTRIDER_CORE_BASE_TASK_H_

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace outrider {

template <typename T>
class Task;

namespace internal {

// A coroutine that ends hands over to the one that awaits it.
struct ResumeContinuation {
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  std::coroutine_handle<> await_suspend(
      std::coroutine_handle<Promise> done) const noexcept {
    return done.promise().continuation;
  }
  void await_resume() const noexcept {}
};

struct TaskPromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::suspend_always initial_suspend() const noexcept { return {}; }
  ResumeContinuation final_suspend() const noexcept { return {}; }
  // A task changes what other tasks use, on both sides of its waits, and an
  // exception may leave that half changed. So it ends the process, from which
  // nothing is lost: streams are resumed at other coordinators, sessions opened
  // at other nodes. Where a task reads what is its own, it uses CatchThrown.
  [[noreturn]] void unhandled_exception() const { std::terminate(); }
};

template <typename T>
struct TaskPromise : TaskPromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <typename U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T Take() { return std::move(*value); }
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
  Task<void> get_return_object();
  void return_void() const {}
  void Take() const {}
};

}  // namespace internal

// A coroutine that begins when it is awaited and yields one T. It may take
// references only to what outlives it, and holds no lock over co_await. After
// a co_await it may run on another thread. Must be awaited at most once.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::TaskPromise<T>;

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(
      std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().continuation = awaiting;
    return handle_;
  }
  T await_resume() { return handle_.promise().Take(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

namespace internal {

template <typename T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

// Starts at once and destroys itself at its end.
struct Detached {
  struct promise_type {
    Detached get_return_object() const { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const {}
    [[noreturn]] void unhandled_exception() const { std::terminate(); }
  };
};

inline Detached RunDetached(Task<void> task) { co_await task; }

}  // namespace internal

// Runs a task on its own; what it refers to must outlive it.
inline void StartDetached(Task<void> task) {
  internal::RunDetached(std::move(task));
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_TASK_H_
