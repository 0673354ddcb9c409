// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_RUNNING_GENERATIONS_H_
#define OUTRIDER_COORDINATOR_SERVICE_RUNNING_GENERATIONS_H_

#include <chrono>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"

namespace outrider {

// The generations that run: a limited number, and no new ones while this
// drains. Thread-safe.
class RunningGenerations {
 public:
  // A stream that began at another coordinator has a place beyond the limit, as
  // what has begun is to go on; any client can say so, hence at most twice the
  // limit run in all.
  enum class Kind { kNew, kResumed };

  explicit RunningGenerations(int most) : most_(most) {}

  // UNAVAILABLE: this drains. RESOURCE_EXHAUSTED: there are too many.
  absl::Status Enter(const std::shared_ptr<Cancellation>& generation,
                     Kind kind);
  void Leave(const std::shared_ptr<Cancellation>& generation);

  // Lets no more in and waits for those that run; cancels what is left after
  // `longest`, and waits for that no longer than `longest_cancelled`. Whether
  // all have left.
  bool Drain(std::chrono::milliseconds longest,
             std::chrono::milliseconds longest_cancelled);
  absl::Status CheckOpen() const;  // UNAVAILABLE: this drains

 private:
  using Clock = std::chrono::steady_clock;

  void AwaitAllUntil(Clock::time_point end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int most_;
  mutable Mutex mu_;
  CondVar changed_;
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_set<std::shared_ptr<Cancellation>> running_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_RUNNING_GENERATIONS_H_
