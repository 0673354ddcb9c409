// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_STEP_PACE_H_
#define OUTRIDER_COORDINATOR_POOL_STEP_PACE_H_

#include <chrono>
#include <optional>

#include "coordinator/peers/failure_limit.h"
#include "core/base/mutex.h"

namespace outrider {

// How long a verifier takes over its steps, and from when on one that has not
// answered counts as hung, where the session can go elsewhere
// meanwhile: far above what steps take at their slowest, and four times what
// the texts should take that this coordinator has it take in at the time. Steps
// that were given up as late raise the limit, so that a node that is only slow
// is soon known to be. Thread-safe; shared by a node's sessions.
class StepPace {
 public:
  using Duration = std::chrono::milliseconds;

  // A step that appends so many tokens is sent; End follows.
  void Begin(int num_appended) {
    MutexLock lock(mu_);
    num_in_flight_ += num_appended;
  }
  // Nothing where the node has not taken in a text yet, and now does.
  std::optional<Duration> Limit() const {
    MutexLock lock(mu_);
    if (num_in_flight_ > kFewTokens && seconds_per_token_ == 0) return {};
    const double prefill = num_in_flight_ * seconds_per_token_;
    return limit_.Get() + std::chrono::ceil<Duration>(
                              kMargin * std::chrono::duration<double>(prefill));
  }

  // The step was answered, and so many tokens of the text were computed.
  void Answered(int num_appended, int num_computed, double compute_seconds,
                Duration took) {
    MutexLock lock(mu_);
    num_in_flight_ -= num_appended;
    if (num_computed <= kFewTokens) {
      if (num_appended <= kFewTokens) limit_.Answered(took);
      return;
    }
    const double rate = compute_seconds / num_computed;
    seconds_per_token_ =
        seconds_per_token_ == 0 ? rate : (seconds_per_token_ * 3 + rate) / 4;
  }
  // It was given up at its limit.
  void Late(int num_appended, Duration took) {
    MutexLock lock(mu_);
    num_in_flight_ -= num_appended;
    if (num_appended <= kFewTokens) {
      limit_.Answered(took);
    } else {
      seconds_per_token_ *= 2;
    }
  }
  // It ended otherwise, which says nothing of its pace.
  void Failed(int num_appended) {
    MutexLock lock(mu_);
    num_in_flight_ -= num_appended;
  }

 private:
  static constexpr int kMargin = 4;
  static constexpr int kFewTokens = 32;  // what a round appends, and more

  mutable Mutex mu_;
  FailureLimit limit_{std::chrono::milliseconds(250)};
  int num_in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  double seconds_per_token_ ABSL_GUARDED_BY(mu_) = 0;  // 0: not known yet
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_STEP_PACE_H_
