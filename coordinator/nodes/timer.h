// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_TIMER_H_
#define OUTRIDER_COORDINATOR_NODES_TIMER_H_

#include <chrono>

#include "core/base/cancellation.h"
#include "core/base/task.h"

namespace outrider {

// Lets coroutines wait: on the queue of all calls in production, in virtual
// time in a simulation. Thread-safe where they run on several threads.
class Timer {
 public:
  virtual ~Timer() = default;
  // Ends after so long, or as soon as it is cancelled.
  virtual Task<void> Sleep(std::chrono::milliseconds time,
                           Cancellation& cancellation) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_TIMER_H_
