// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/worker.h"

namespace outrider {

Worker::Worker(int num_threads) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

Worker::~Worker() {
  MutexLock lock(mu_);
  is_ending_ = true;
  changed_.NotifyAll();
}

void Worker::Add(std::coroutine_handle<> waiting, Urgency urgency) {
  MutexLock lock(mu_);
  (urgency == Urgency::kUrgent ? urgent_ : ordinary_).push_back(waiting);
  changed_.NotifyOne();
}

void Worker::Run() {
  while (true) {
    std::coroutine_handle<> next;
    {
      MutexLock lock(mu_);
      while (urgent_.empty() && ordinary_.empty() && !is_ending_) {
        changed_.Wait(mu_);
      }
      Queue& queue = urgent_.empty() ? ordinary_ : urgent_;
      if (queue.empty()) return;
      next = queue.front();
      queue.pop_front();
    }
    next.resume();
  }
}

}  // namespace outrider
