// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_RUN_SCHEDULER_H_
#define OUTRIDER_CORE_TESTING_RUN_SCHEDULER_H_

#include <memory>
#include <utility>

#include "core/engine/batch_scheduler.h"

namespace outrider::testing {

// Where one thread does all that several may do for a scheduler.

inline void BeginAdmitted(BatchScheduler& scheduler,
                          BatchScheduler::Clock::time_point now) {
  while (std::unique_ptr<Job> job = scheduler.NextToBegin()) {
    job->Begin();
    scheduler.Begun(std::move(job), now);
  }
}

// The next pass has all that may be in it.
inline const Pass* NextPass(BatchScheduler& scheduler,
                            BatchScheduler::Clock::time_point now) {
  scheduler.Sweep(now);
  BeginAdmitted(scheduler, now);
  return scheduler.NextPass(now);
}

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_RUN_SCHEDULER_H_
