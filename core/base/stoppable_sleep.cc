// SPDX-License-Identifier: Apache-2.0
#include "core/base/stoppable_sleep.h"

#include <condition_variable>
#include <mutex>

namespace outrider {

bool SleepUnlessStopped(std::chrono::milliseconds duration,
                        const std::stop_token& stop) {
  std::mutex mu;
  std::condition_variable_any wake;
  std::unique_lock<std::mutex> lock(mu);
  return !wake.wait_for(lock, stop, duration,
                        [&] { return stop.stop_requested(); });
}

}  // namespace outrider
