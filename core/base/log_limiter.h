// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_LOG_LIMITER_H_
#define OUTRIDER_CORE_BASE_LOG_LIMITER_H_

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"

namespace outrider {

// Lets one line a period into the log, where strangers can cause any number of
// them, and counts the others. Thread-safe.
class LogLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LogLimiter(std::chrono::seconds period) : period_(period) {}

  // Nothing where the line is to be left out; else what to end it with: "", or
  // how many were left out before it.
  std::optional<std::string> Admit(Clock::time_point now = Clock::now()) {
    MutexLock lock(mu_);
    if (last_.has_value() && now < *last_ + period_) {
      ++num_left_out_;
      return std::nullopt;
    }
    last_ = now;
    const int num_left_out = std::exchange(num_left_out_, 0);
    if (num_left_out == 0) return "";
    return absl::StrCat(" (", num_left_out, " more like it before)");
  }

 private:
  const std::chrono::seconds period_;

  Mutex mu_;
  std::optional<Clock::time_point> last_ ABSL_GUARDED_BY(mu_);
  int num_left_out_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_LOG_LIMITER_H_
