// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_PULSE_H_
#define OUTRIDER_COORDINATOR_NODES_PULSE_H_

#include <chrono>
#include <list>
#include <optional>

#include "coordinator/peers/failure_limit.h"
#include "core/base/cancellation.h"
#include "core/base/child_cancellation.h"
#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"

namespace outrider {

// Whether a node still says anything while calls wait for it. One that hangs,
// or cannot be reached any more, is so told from one that is slow long before
// the limit of a step is reached: it is quiet when calls wait and nothing
// comes, is then asked what it is, which takes no pass, and is silent when that
// stays unanswered for four times as long as it ever does, while another node
// has been heard: else it may be us who hear nothing.
// Thread-safe; one a node.
class Pulse {
 public:
  using Clock = MonotonicClock;
  // A call that waits for the node, and has its cancellation: the session's,
  // and that of the pulse, which gives the call up where the node falls silent.
  class Call {
   public:
    Call(Pulse& pulse, Cancellation& session)
        : pulse_(pulse), cancellation_(session), place_(pulse.Enter(*this)) {}
    Call(const Call&) = delete;
    ~Call() { pulse_.Leave(place_); }

    Cancellation& cancellation() { return cancellation_.get(); }
    bool is_given_up() const { return cancellation_.is_given_up(); }

   private:
    friend class Pulse;
    Pulse& pulse_;
    ChildCancellation cancellation_;
    const std::list<Call*>::iterator place_;
  };

  void Heard(Clock::time_point now);
  // It is asked what it is; it has answered that, after so long, which tells of
  // its pace unless it had been given up: then of how long it hung. True: it
  // had been, and is back.
  void Asked(Clock::time_point now);
  bool Answered(Clock::duration took, Clock::time_point now);
  // It has said that it is not ready: it serves the calls that wait, or its
  // connection is broken and they end by themselves.
  void Refused();

  Clock::time_point heard_at() const;
  bool IsQuiet(Clock::time_point now) const;
  // It is quiet, and has been asked for too long; `other_heard_at`: when a node
  // that could be heard as well was heard last.
  bool IsSilent(Clock::time_point now, Clock::time_point other_heard_at) const;
  // Ends the calls that wait.
  void GiveUp();
  // Who listens was away itself.
  void ListenAnew(Clock::time_point now);

  static constexpr std::chrono::milliseconds kQuiet{150};

 private:
  std::list<Call*>::iterator Enter(Call& call);
  void Leave(std::list<Call*>::iterator place);
  void HeardLocked(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static constexpr int kMargin = 4;

  FailureLimit limit_{std::chrono::milliseconds(300), kMargin, /*window=*/32};
  mutable Mutex mu_;
  std::list<Call*> calls_ ABSL_GUARDED_BY(mu_);
  Clock::time_point waits_since_ ABSL_GUARDED_BY(mu_) = {};
  Clock::time_point heard_at_ ABSL_GUARDED_BY(mu_) = {};
  std::optional<Clock::time_point> asked_at_ ABSL_GUARDED_BY(mu_);  // first
  bool was_given_up_ ABSL_GUARDED_BY(mu_) = false;  // and not Answered since
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_PULSE_H_
