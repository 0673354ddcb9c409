// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_MOVE_GATE_H_
#define OUTRIDER_COORDINATOR_POOL_MOVE_GATE_H_

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"

namespace outrider {

// Lets moved sessions into a node one after the other, so that taking in their
// texts costs those that are there a quarter of the node's time at most: each
// keeps the gate closed for four times as long as the node had to compute for
// it. One a node, for this coordinator's sessions. Thread-
// safe.
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

  bool IsOpen(Clock::time_point now) const {
    MutexLock lock(mu_);
    return !is_taken_ && now >= opens_at_;
  }
  // False of a Turn: another has it, or the gate is still closed.
  Turn Enter(Clock::time_point now) {
    MutexLock lock(mu_);
    if (is_taken_ || now < opens_at_) return {};
    is_taken_ = true;
    return Turn(*this, now);
  }
  // How long to wait, at least, before asking again.
  std::chrono::milliseconds Wait(Clock::time_point now) const {
    constexpr std::chrono::milliseconds kShortest(5);
    MutexLock lock(mu_);
    return std::max(kShortest, std::chrono::ceil<std::chrono::milliseconds>(
                                   opens_at_ - now));
  }

 private:
  static constexpr int kShare = 4;  // of the time, one part goes to the moved

  void Leave(Clock::time_point opens_at) {
    MutexLock lock(mu_);
    is_taken_ = false;
    opens_at_ = opens_at;
  }

  mutable Mutex mu_;
  bool is_taken_ ABSL_GUARDED_BY(mu_) = false;
  Clock::time_point opens_at_ ABSL_GUARDED_BY(mu_) = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_MOVE_GATE_H_
