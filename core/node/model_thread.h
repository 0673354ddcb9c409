// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_MODEL_THREAD_H_
#define OUTRIDER_CORE_NODE_MODEL_THREAD_H_

#include <chrono>
#include <deque>
#include <functional>
#include <thread>

#include "core/base/mutex.h"

namespace outrider {

// The one thread that owns a node's model and caches. Jobs run one after the
// other, in the order of their arrival; between them, at least once a second,
// `housekeeping` runs. Thread-safe.
class ModelThread {
 public:
  using Job = std::function<void()>;

  ModelThread(int max_queue_length, Job housekeeping);
  ModelThread(const ModelThread&) = delete;
  ModelThread& operator=(const ModelThread&) = delete;
  // Runs what is queued, then ends.
  ~ModelThread();

  // False, and the job is dropped, where the queue is full.
  [[nodiscard]] bool Submit(Job job);

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  // Empty when it is time for housekeeping, or the end.
  Job WaitForJob(Clock::time_point deadline);

  const size_t max_queue_length_;
  const Job housekeeping_;

  Mutex mu_;
  CondVar wake_;
  std::deque<Job> queue_ ABSL_GUARDED_BY(mu_);
  bool ending_ ABSL_GUARDED_BY(mu_) = false;

  std::jthread thread_;  // last: it uses the members above
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_MODEL_THREAD_H_
