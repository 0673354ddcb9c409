// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_STOPWATCH_H_
#define OUTRIDER_COORDINATOR_ROUND_STOPWATCH_H_

#include <chrono>

#include "core/base/monotonic_clock.h"

namespace outrider {

// Runs from its construction on.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  using Clock = MonotonicClock;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_STOPWATCH_H_
