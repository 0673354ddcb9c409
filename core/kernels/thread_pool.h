// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_THREAD_POOL_H_
#define OUTRIDER_CORE_KERNELS_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"

namespace outrider::kernels {

// Threads that help one caller at a time with the parts of a job. Nobody waits
// for a helper to begin: whoever is awake takes the next part, so that a helper
// whose core is busy with another program costs nothing but its help. Helpers
// without work spin for kSpinTime, which covers what lies between two jobs of a
// pass and between two passes of a draft, and then sleep. Thread-safe.
class ThreadPool {
 public:
  // The calling thread counts as one of them: 1 creates none.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(part) once for each part in [0, num_parts), on this thread and
  // the helpers; returns when all calls have. While another job runs, its own
  // included, all calls are made on this thread. If calls throw, one of the
  // exceptions is thrown here once all are over that have begun; parts that
  // have not begun may be left out.
  void Run(int num_parts, absl::FunctionRef<void(int part)> body);

 private:
  // A job's number, and its parts: claimed and in all. It is one word, so that
  // a helper that comes late claims nothing of the next job.
  using Ticket = uint64_t;

  void Help();
  // Takes parts of this job until there are none left.
  void Work(Ticket job);
  void FinishPart(Ticket job);
  void AwaitOthers(int num_parts);
  void KeepException() ABSL_LOCKS_EXCLUDED(mu_);
  void SleepUntilChange(Ticket seen) ABSL_LOCKS_EXCLUDED(mu_);

  std::atomic<Ticket> ticket_{0};
  std::atomic<int> num_finished_{0};
  std::atomic<bool> is_busy_{false};
  std::atomic<int> num_asleep_{0};  // helpers
  std::atomic<bool> is_caller_asleep_{false};
  std::atomic<bool> is_stopping_{false};
  // The function of the job under way: it is written before the job's ticket,
  // and read by who holds a part.
  const absl::FunctionRef<void(int part)>* body_ = nullptr;

  Mutex mu_;
  CondVar helpers_wake_;
  CondVar caller_wakes_;
  std::exception_ptr exception_ ABSL_GUARDED_BY(mu_);

  std::vector<std::jthread> helpers_;  // last: they use the members above
};

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_THREAD_POOL_H_
