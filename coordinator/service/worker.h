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
// from their work. Whoever waits here is in order of arrival, urgent ones
// before the others; how many there can be is for the callers to bound.
// Thread-safe; must outlive what waits.
class Worker {
 public:
  enum class Urgency { kUrgent, kOrdinary };

  explicit Worker(int num_threads);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // co_await worker.TakeTurn(): the coroutine goes on on a thread of the
  // worker, and keeps it until it waits again.
  struct Turn {
    Worker& worker;
    Urgency urgency;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
      worker.Add(waiting, urgency);
    }
    void await_resume() const noexcept {}
  };
  Turn TakeTurn(Urgency urgency) { return {*this, urgency}; }

 private:
  using Queue = std::deque<std::coroutine_handle<>>;

  void Add(std::coroutine_handle<> waiting, Urgency urgency);
  void Run();

  Mutex mu_;
  CondVar changed_;
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  Queue urgent_ ABSL_GUARDED_BY(mu_);
  Queue ordinary_ ABSL_GUARDED_BY(mu_);
  std::vector<std::jthread> threads_;  // last: they use the members above
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_WORKER_H_
