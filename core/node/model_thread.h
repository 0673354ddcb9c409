// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_MODEL_THREAD_H_
#define OUTRIDER_CORE_NODE_MODEL_THREAD_H_

#include <chrono>
#include <deque>
#include <functional>
#include <thread>

#include "core/base/mutex.h"
#include "core/node/node_counters.h"

namespace outrider {

// Owns a node's model and caches: jobs run one at a time, in the order of their
// arrival; between them, at least once a second, `housekeeping` runs.
//
// A job that finds the model idle runs on the thread that submits it: handing
// it over would cost a wake-up, up to 40 us on a virtual machine, and with one
// client that is every job. The others wait for a thread of the model's own.
// Thread-safe.
class ModelThread {
 public:
  using Job = std::function<void()>;

  ModelThread(int max_queue_length, Job housekeeping);
  ModelThread(const ModelThread&) = delete;
  ModelThread& operator=(const ModelThread&) = delete;
  // Runs what is queued, then ends. No job may be running on a thread of the
  // caller's.
  ~ModelThread();

  // Runs the job now, or queues it. False, and the job is dropped, where the
  // queue is full.
  [[nodiscard]] bool Submit(Job job);

  // Kept by those who submit calls.
  NodeCounters& counters() { return counters_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  // The first of the queue; unlocked while it runs.
  void RunFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_queue_length_;
  const Job housekeeping_;
  NodeCounters counters_;

  Mutex mu_;
  CondVar wake_;
  std::deque<Job> queue_ ABSL_GUARDED_BY(mu_);
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // some thread has the model
  bool ending_ ABSL_GUARDED_BY(mu_) = false;

  std::jthread thread_;  // last: it uses the members above
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_MODEL_THREAD_H_
