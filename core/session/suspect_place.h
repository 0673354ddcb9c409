// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_SUSPECT_PLACE_H_
#define OUTRIDER_CORE_SESSION_SUSPECT_PLACE_H_

#include <atomic>
#include <chrono>
#include <list>
#include <optional>

#include "core/base/cancellation.h"
#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"
#include "core/base/session_id.h"

namespace outrider {

// A verifier's one place for sessions under whose steps nodes were lost: of all
// coordinators' suspects one at a time, so that the node is never lost under
// two of them. Thread-safe.
class SuspectPlace {
 public:
  using Clock = MonotonicClock;
  // How long the place is kept for a step that has not come.
  static constexpr std::chrono::seconds kPatience{5};

  // Somebody who waits: `freed` is cancelled when the place becomes free.
  class Waiter {
   public:
    Waiter(SuspectPlace& place, Cancellation& freed)
        : place_(place), position_(place.Add(freed)) {}
    Waiter(const Waiter&) = delete;
    ~Waiter() { place_.Remove(position_); }

   private:
    SuspectPlace& place_;
    const std::list<Cancellation*>::iterator position_;
  };

  // Whether the session has the place now: until the calls that it makes with
  // it have ended.
  bool Enter(const SessionId& session, Clock::time_point now) {
    MutexLock lock(mu_);
    const bool is_free =
        !holder_.has_value() || (num_at_work_ == 0 && now >= kept_until_);
    if (!is_free && *holder_ != session) return false;
    holder_ = session;
    kept_until_ = now + kPatience;
    is_step_to_come_ = true;
    is_taken_ = true;
    return true;
  }
  // A call of some session has come. True: that session has the place, and
  // Ended is told when the call's work is over, which may be long after its
  // caller has gone.
  bool Began(const SessionId& session) {
    if (!is_taken_) return false;
    MutexLock lock(mu_);
    if (holder_ != session) return false;
    is_step_to_come_ = false;
    ++num_at_work_;
    return true;
  }
  void Ended() {
    MutexLock lock(mu_);
    if (--num_at_work_ == 0 && !is_step_to_come_) Free();
  }
  // The session is released. While a call of it is at work the place is kept.
  void Released(const SessionId& session) {
    if (!is_taken_) return;
    MutexLock lock(mu_);
    if (holder_ != session) return;
    is_step_to_come_ = false;
    if (num_at_work_ == 0) Free();
  }

 private:
  void Free() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    holder_.reset();
    is_taken_ = false;
    for (Cancellation* freed : waiting_) freed->Cancel();
  }
  std::list<Cancellation*>::iterator Add(Cancellation& freed) {
    MutexLock lock(mu_);
    return waiting_.insert(waiting_.end(), &freed);
  }
  void Remove(std::list<Cancellation*>::iterator position) {
    MutexLock lock(mu_);
    waiting_.erase(position);
  }

  // What all calls look at, of which none is a suspect's as a rule.
  std::atomic<bool> is_taken_ = false;
  Mutex mu_;
  std::optional<SessionId> holder_ ABSL_GUARDED_BY(mu_);
  int num_at_work_ ABSL_GUARDED_BY(mu_) = 0;  // of the holder's calls
  // The holder has asked since its last call came: the end of an earlier one
  // does not free the place.
  bool is_step_to_come_ ABSL_GUARDED_BY(mu_) = false;
  Clock::time_point kept_until_ ABSL_GUARDED_BY(mu_) = {};
  std::list<Cancellation*> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_SUSPECT_PLACE_H_
