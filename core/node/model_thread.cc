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
  {
    MutexLock lock(mu_);
    // Behind those that wait, even where the model is free this instant.
    if (busy_ || !queue_.empty()) {
      if (queue_.size() >= max_queue_length_) return false;
      queue_.push_back(std::move(job));
      return true;  // whoever has the model wakes the thread
    }
    busy_ = true;
  }
  job();
  MutexLock lock(mu_);
  busy_ = false;
  if (!queue_.empty() || ending_) wake_.NotifyOne();
  return true;
}

void ModelThread::Run() {
  constexpr std::chrono::seconds kInterval(1);
  Clock::time_point next_housekeeping = Clock::now() + kInterval;
  MutexLock lock(mu_);
  while (true) {
    if (Clock::now() >= next_housekeeping) {
      queue_.push_back(housekeeping_);
      next_housekeeping = Clock::now() + kInterval;
    }
    if (!busy_ && !queue_.empty()) {
      RunFirst();
    } else if (!busy_ && ending_) {
      return;
    } else {
      wake_.WaitUntil(mu_, next_housekeeping);
    }
  }
}

void ModelThread::RunFirst() {
  const Job job = std::move(queue_.front());
  queue_.pop_front();
  busy_ = true;
  mu_.Unlock();
  job();
  mu_.Lock();
  busy_ = false;
}

}  // namespace outrider
