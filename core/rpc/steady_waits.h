// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_STEADY_WAITS_H_
#define OUTRIDER_CORE_RPC_STEADY_WAITS_H_

#include <algorithm>
#include <chrono>
#include <ctime>

namespace outrider {

// A program that links outrider_steady_waits replaces libc's syscall() by one
// that has futex waits last as long as they had to when they began. Abseil's,
// and so those of gRPC's timers, are until a time of the clock that may be set:
// set back by an hour, it would have every deadline, alarm and reconnection
// of the process sleep for an hour more.

// When a wait until `end` of the clock that may be set ends by the steady one,
// if it is now `now` there and `steady_now` here.
inline timespec SteadyEnd(const timespec& end, const timespec& now,
                          const timespec& steady_now) {
  const auto since_epoch = [](const timespec& time) {
    return std::chrono::seconds(time.tv_sec) +
           std::chrono::nanoseconds(time.tv_nsec);
  };
  const std::chrono::nanoseconds steady_end =
      std::max(std::chrono::nanoseconds(0),
               since_epoch(steady_now) + since_epoch(end) - since_epoch(now));
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(steady_end);
  return {.tv_sec = seconds.count(), .tv_nsec = (steady_end - seconds).count()};
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_STEADY_WAITS_H_
