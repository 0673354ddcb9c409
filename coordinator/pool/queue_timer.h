// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_QUEUE_TIMER_H_
#define OUTRIDER_COORDINATOR_POOL_QUEUE_TIMER_H_

#include <chrono>

#include "coordinator/nodes/timer.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/sleep.h"

namespace outrider {

// Who sleeps goes on on a thread of the queue, which must outlive it.
class QueueTimer final : public Timer {
 public:
  explicit QueueTimer(CallQueue& queue) : queue_(queue) {}
  Task<void> Sleep(std::chrono::milliseconds time,
                   Cancellation& cancellation) override {
    co_await outrider::Sleep(queue_, time, cancellation);
  }

 private:
  CallQueue& queue_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_QUEUE_TIMER_H_
