// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_WORKER_H_
#define OUTRIDER_COORDINATOR_SERVICE_WORKER_H_

#include <coroutine>
#include <deque>
#include <thread>
#include <vector>

#include "core/base/mutex.h"

namespace outrider {

// Threads for what takes long and waits for nobody, such as the tokenising of a
// long text: neither gRPC's threads nor those that run the rounds may be kept
// from their work. Whoever waits here is in order of arrival; how many there
// can be is for the callers to bound. Thread-safe; must outlive what waits.
class Worker {
 public:
  explicit Worker(int num_threads);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // co_await worker.TakeTurn(): the coroutine goes on on a thread of the
  // worker, and keeps it until it waits again.
  struct Turn {
    Worker& worker;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) { worker.Add(waiting); }
    void await_resume() const noexcept {}
  };
  Turn TakeTurn() { return {*this}; }

 private:
  void Add(std::coroutine_handle<> waiting);
  void Run();

  Mutex mu_;
  CondVar changed_;
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<std::coroutine_handle<>> waiting_ ABSL_GUARDED_BY(mu_);
  std::vector<std::jthread> threads_;  // last: they use the members above
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_WORKER_H_
