// SPDX-License-Identifier: Apache-2.0
#include "core/node/model_thread.h"

#include <utility>

namespace outrider {

ModelThread::ModelThread(int max_queue_length, Job housekeeping)
    : max_queue_length_(max_queue_length),
      housekeeping_(std::move(housekeeping)),
      thread_([this] { Run(); }) {}

ModelThread::~ModelThread() {
  MutexLock lock(mu_);
  ending_ = true;
  wake_.NotifyOne();
}

bool ModelThread::Submit(Job job) {
  MutexLock lock(mu_);
  if (queue_.size() >= max_queue_length_) return false;
  queue_.push_back(std::move(job));
  wake_.NotifyOne();
  return true;
}

void ModelThread::Run() {
  constexpr std::chrono::seconds kInterval(1);
  Clock::time_point next_housekeeping = Clock::now() + kInterval;
  while (true) {
    const Job job = WaitForJob(next_housekeeping);
    if (job) job();
    if (Clock::now() >= next_housekeeping) {
      housekeeping_();
      next_housekeeping = Clock::now() + kInterval;
    } else if (!job) {
      return;
    }
  }
}

ModelThread::Job ModelThread::WaitForJob(Clock::time_point deadline) {
  MutexLock lock(mu_);
  while (queue_.empty() && !ending_) {
    if (!wake_.WaitUntil(mu_, deadline)) break;
  }
  if (queue_.empty()) return {};
  Job job = std::move(queue_.front());
  queue_.pop_front();
  return job;
}

}  // namespace outrider
