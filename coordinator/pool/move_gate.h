// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_MOVE_GATE_H_
#define OUTRIDER_COORDINATOR_POOL_MOVE_GATE_H_

#include <chrono>
#include <list>
#include <utility>

#include "coordinator/pool/timer.h"
#include "core/base/cancellation.h"
#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"
#include "core/base/task.h"

namespace outrider {

// Lets moved sessions into a node one after the other, in the order in which
// they came, so that taking in their texts costs those that are there a quarter
// of the node's time at most: each keeps the gate closed for four times as long
// as the node had to compute for its rows. One a node, for this coordinator's
// sessions. Thread-safe.
class MoveGate {
 public:
  using Clock = MonotonicClock;

  // The one place in the gate. It must end before the gate does.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), began_(other.began_) {}
    Turn& operator=(Turn&& other) noexcept {
      End(/*taken=*/{});
      gate_ = std::exchange(other.gate_, nullptr);
      began_ = other.began_;
      return *this;
    }
    ~Turn() { End(/*taken=*/{}); }

    explicit operator bool() const { return gate_ != nullptr; }
    // The node has computed for so long.
    void End(Clock::duration taken) {
      if (gate_ == nullptr) return;
      std::exchange(gate_, nullptr)->Leave(began_ + kShare * taken);
    }

   private:
    friend class MoveGate;
    Turn(MoveGate& gate, Clock::time_point now) : gate_(&gate), began_(now) {}

    MoveGate* gate_ = nullptr;
    Clock::time_point began_ = {};
  };

  // A session's place in the line. It must end before the gate does.
  class Place {
   public:
    explicit Place(MoveGate& gate);
    Place(const Place&) = delete;
    ~Place();

    // False of a Turn: another one comes first.
    Turn Enter(Clock::time_point now);
    // Ends when Enter may bring a turn, or when it is cancelled, or after a
    // while: what is true of the node, and of others, may have changed.
    Task<void> WaitForTurn(Timer& timer, Cancellation& cancellation);

   private:
    friend class MoveGate;

    MoveGate& gate_;
    std::list<Place*>::iterator position_;
    Cancellation* sleep_ = nullptr;  // the gate's mutex guards it
  };

  // Whether who comes now need not wait.
  bool IsOpen(Clock::time_point now) const;
  // False of a Turn: it is not open.
  Turn Enter(Clock::time_point now);

 private:
  static constexpr int kShare = 4;  // of the time, one part goes to the moved

  void Leave(Clock::time_point opens_at);
  bool IsFreeLocked(Clock::time_point now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !is_taken_ && now >= opens_at_;
  }
  // Who is the first in the line looks anew.
  void WakeFirstLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::chrono::milliseconds LongestNapLocked(const Place& place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  bool is_taken_ ABSL_GUARDED_BY(mu_) = false;
  Clock::time_point opens_at_ ABSL_GUARDED_BY(mu_) = {};
  std::list<Place*> line_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_MOVE_GATE_H_
