// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_MOVE_GATE_H_
#define OUTRIDER_COORDINATOR_NODES_MOVE_GATE_H_

#include <chrono>
#include <list>
#include <optional>
#include <set>
#include <utility>

#include "coordinator/nodes/timer.h"
#include "core/base/cancellation.h"
#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"
#include "core/base/task.h"

namespace outrider {

// Lets moved sessions into a node one after the other, in the order in which
// they came, so that taking in their texts costs those that are there a quarter
// of the node's time at most: each keeps the gate closed for four times as long
// as the node has to compute for its rows, as those before it tell, and then
// until the node says (ReprefillBudget), which knows what other coordinators
// send it. A busy node takes a text in beside others, over several passes, so
// that a few may be on their way at once. One a node. Thread-safe.
class MoveGate {
 public:
  using Clock = MonotonicClock;

  // What has come of letting a session in.
  struct Outcome {
    Clock::duration taken = {};  // by the node, to compute its rows
    // When the node has time for the next one; an older node does not say.
    std::optional<Clock::time_point> next_at = {};
  };

  // A way through the gate. It must end before the gate does.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept { *this = std::move(other); }
    Turn& operator=(Turn&& other) noexcept;
    ~Turn() { End({}); }

    explicit operator bool() const { return gate_ != nullptr; }
    void End(const Outcome& outcome);

   private:
    friend class MoveGate;
    MoveGate* gate_ = nullptr;
    int num_tokens_ = 0;
    Clock::duration expected_ = {};  // to be taken
    std::multiset<Clock::time_point>::iterator entered_ = {};
  };

  // A session's place in the line. It must end before the gate does.
  class Place {
   public:
    // Those that have ranks go in their order through the places they have.
    explicit Place(MoveGate& gate, std::optional<Clock::time_point> rank = {});
    Place(const Place&) = delete;
    ~Place();

    // Its text has so many tokens. False of a Turn: another one comes first.
    Turn Enter(int num_tokens, Clock::time_point now);
    // Ends when Enter may bring a turn, or when it is cancelled, or after a
    // while: what is true of the node, and of others, may have changed.
    Task<void> WaitForTurn(Timer& timer, Cancellation& cancellation);

   private:
    friend class MoveGate;

    MoveGate& gate_;
    const std::optional<Clock::time_point> rank_;
    std::list<Place*>::iterator position_;
    Cancellation* sleep_ = nullptr;  // the gate's mutex guards it
  };

  // Whether who comes now need not wait.
  bool IsOpen(Clock::time_point now) const;
  // The node is another process now, which has no account yet.
  void StartAnew();
  // False of a Turn: it is not open.
  Turn Enter(int num_tokens, Clock::time_point now);

 private:
  static constexpr int kShare = 4;  // of the time, one part goes to the moved
  // So many are on their way at once: more would wait for each other there.
  static constexpr int kMostTurns = 4;

  Turn EnterLocked(int num_tokens, Clock::time_point now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(const Turn& turn, const Outcome& outcome);
  // Nobody else comes in before the first has shown what a text costs.
  bool HasPlaceLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsFreeLocked(Clock::time_point now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return HasPlaceLocked() && now >= opens_at_;
  }
  // Goes by its rank, if any: each one after it takes the next one's place.
  void AddLocked(Place* place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Who is the first in the line looks anew.
  void WakeFirstLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::chrono::milliseconds LongestNapLocked(const Place& place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  // Those who are on their way: when they came, and what they take; and when
  // the node has time for the next, as it said last.
  std::multiset<Clock::time_point> entered_ ABSL_GUARDED_BY(mu_);
  Clock::duration expected_ ABSL_GUARDED_BY(mu_) = {};
  Clock::time_point next_at_ ABSL_GUARDED_BY(mu_) = {};
  Clock::time_point opens_at_ ABSL_GUARDED_BY(mu_) = {};
  double seconds_per_token_ ABSL_GUARDED_BY(mu_) = 0;  // 0: not known yet
  std::list<Place*> line_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_MOVE_GATE_H_
