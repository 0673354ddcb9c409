// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_CIRCUIT_BREAKER_H_
#define OUTRIDER_COORDINATOR_PEERS_CIRCUIT_BREAKER_H_

#include <algorithm>
#include <chrono>

#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"

namespace outrider {

// Keeps what fails from slowing every round: after three failures in a row it
// is off for a second, doubling to 30 s; then one call probes it. A node's is
// shared by all its sessions; a session has others of its own, for failures
// that say nothing of the node (OptionalDraftClient) and for drafts ahead
// (AheadDraftClient). Thread-safe.
class CircuitBreaker {
 public:
  using Clock = MonotonicClock;

  // What is said of a call: that it may not be made, or may, or is the probe.
  class Permit {
   public:
    Permit() = default;
    explicit operator bool() const { return may_call_; }

   private:
    friend class CircuitBreaker;
    Permit(bool may_call, bool is_probe)
        : may_call_(may_call), is_probe_(is_probe) {}
    bool may_call_ = false;
    bool is_probe_ = false;
  };

  // Whether a call may be made now. If so, one of Success, Failure and Abandon
  // must follow; the last two are given the permit.
  Permit Allow(Clock::time_point now) {
    MutexLock lock(mu_);
    if (failures_ < kFailuresToOpen) return Permit(true, false);
    if (now < open_until_ || probing_) return Permit();
    probing_ = true;
    return Permit(true, true);
  }
  // What Allow would say.
  bool WouldAllow(Clock::time_point now) const {
    MutexLock lock(mu_);
    return failures_ < kFailuresToOpen || (now >= open_until_ && !probing_);
  }
  // Whether a call made now would not be allowed, probes aside.
  bool IsOpen(Clock::time_point now) const {
    MutexLock lock(mu_);
    return failures_ >= kFailuresToOpen && now < open_until_;
  }
  // The node answered, whichever call that was: all is well, and a probe that
  // is under way is as good as answered.
  void Success() {
    MutexLock lock(mu_);
    failures_ = 0;
    pause_ = kFirstPause;
    probing_ = false;
  }
  // True where it is news: the first failure after a success, or a new pause.
  // Calls that had no permit tell of the node as well.
  bool Failure(Clock::time_point now, Permit permit) {
    MutexLock lock(mu_);
    if (permit.is_probe_) probing_ = false;
    if (++failures_ < kFailuresToOpen) return failures_ == 1;
    if (now < open_until_) return false;  // calls that began before the pause
    open_until_ = now + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
    return true;
  }
  // The node was away and answers other calls now: the next call probes it,
  // whatever is left of the pause.
  void Returned() {
    MutexLock lock(mu_);
    open_until_ = {};
    pause_ = kFirstPause;
  }
  // The call ended without saying anything about the node.
  void Abandon(Permit permit) {
    MutexLock lock(mu_);
    if (permit.is_probe_) probing_ = false;
  }

 private:
  static constexpr int kFailuresToOpen = 3;
  static constexpr Clock::duration kFirstPause = std::chrono::seconds(1);
  static constexpr Clock::duration kLongestPause = std::chrono::seconds(30);

  mutable Mutex mu_;
  int failures_ ABSL_GUARDED_BY(mu_) = 0;
  bool probing_ ABSL_GUARDED_BY(mu_) = false;
  Clock::duration pause_ ABSL_GUARDED_BY(mu_) = kFirstPause;
  Clock::time_point open_until_ ABSL_GUARDED_BY(mu_) = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_CIRCUIT_BREAKER_H_
