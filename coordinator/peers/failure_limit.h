// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_FAILURE_LIMIT_H_
#define OUTRIDER_COORDINATOR_PEERS_FAILURE_LIMIT_H_

#include <algorithm>
#include <chrono>

#include "core/base/mutex.h"

namespace outrider {

// How long a peer may not answer before it counts as failed: far above what it
// takes at its slowest, so that no answer is given up for being late. A draft
// that were would be one whose tokens took long, and the output's law would
// change. Thread-safe; shared by a node's sessions.
class FailureLimit {
 public:
  using Duration = std::chrono::milliseconds;

  // `least`: of a peer that is fast, or not known yet. Else `margin` times its
  // slowest answer of the last `window` or twice as many, which for the default
  // is above p99.
  explicit FailureLimit(Duration least, int margin = 8, int window = 512)
      : least_(least), margin_(margin), window_(window) {}

  Duration Get() const {
    MutexLock lock(mu_);
    return std::max(least_, margin_ * std::max(slowest_, slowest_before_));
  }
  void Answered(Duration took) {
    MutexLock lock(mu_);
    slowest_ = std::max(slowest_, took);
    if (++num_calls_ < window_) return;
    num_calls_ = 0;
    slowest_before_ = slowest_;
    slowest_ = {};
  }

 private:
  const Duration least_;
  const int margin_;
  const int window_;
  mutable Mutex mu_;
  int num_calls_ ABSL_GUARDED_BY(mu_) = 0;
  Duration slowest_ ABSL_GUARDED_BY(mu_) = {};         // of this window
  Duration slowest_before_ ABSL_GUARDED_BY(mu_) = {};  // and of the last
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_FAILURE_LIMIT_H_
