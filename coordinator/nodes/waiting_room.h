// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_WAITING_ROOM_H_
#define OUTRIDER_COORDINATOR_NODES_WAITING_ROOM_H_

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/nodes/timer.h"
#include "core/base/cancellation.h"
#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"
#include "core/base/task.h"

namespace outrider {

struct VerifierNode;

// Sessions that no verifier has room for at the time. They are called in the
// order of their kinds, and of each as they came. Thread-safe.
//
// What comes free is too little for a long text as long as shorter ones take it
// as it comes. So these do not pass one that has not begun and has waited for
// `kPatience`: who would wait behind it, and is shorter, does not ask at the
// verifiers that have refused it, and room for it adds up. It may wait in vain,
// as others than this coordinator take room: after a turn all may ask, for as
// long. The turns are the room's: with their own, two would leave no break.
class WaitingRoom {
 public:
  using Clock = MonotonicClock;
  using Verifiers = std::vector<const VerifierNode*>;

  static constexpr std::chrono::seconds kPatience{2};
  // Most answers end within a turn, and so their room adds up. A user waits so
  // long for a first word, but hardly for a minute.
  static constexpr std::chrono::seconds kLongestKept{20};
  // Who asks, and was not refused by then, or in twice the time of its last
  // refusal, is let in: its text is being read, which may take long. A node
  // that has no room says so after 100 ms and the pass of that time.
  static constexpr std::chrono::milliseconds kLongestRefusal{300};

  enum class Kind {
    kHeld,     // it has begun, and so has a place however many there are
    kResumed,  // it began at another coordinator, or its client says so
    kNew,
  };
  struct Guest {
    Kind kind = Kind::kNew;
    // The one verifier that it can go on at; null: any.
    const VerifierNode* at = nullptr;
    int text_length = 0;
  };

  // One session's place. Used by one coroutine at a time; must not outlive the
  // room.
  class Place {
   public:
    Place(WaitingRoom& room, const Guest& guest)
        : room_(room), guest_(guest), entered_at_(Clock::now()) {}
    Place(const Place&) = delete;
    // Calls the next one: where there was room for one there may be more.
    ~Place() { room_.Leave(*this); }

    // These have no room for it: told before it waits.
    void WasRefusedBy(Verifiers verifiers);
    // Ends when it is called, which may have been before, or cancelled, and
    // after so long at the latest.
    Task<void> Wait(Timer& timer, std::chrono::milliseconds longest,
                    Cancellation& cancellation);

   private:
    friend class WaitingRoom;
    bool NeedsAll(const VerifierNode& verifier, int text_length,
                  Clock::time_point now) const;

    WaitingRoom& room_;
    const Guest guest_;
    const Clock::time_point entered_at_;
    // The room's mutex guards these.
    Verifiers refused_by_ = {};
    std::optional<Clock::time_point> asks_since_ = {};  // none: it waits
    Clock::duration longest_refusal_ = kLongestRefusal;
    bool is_called_ = false;         // since it last went to ask
    Cancellation* sleep_ = nullptr;  // where it sleeps
  };

  // No new one enters where so many wait, and no resumed one beyond twice that.
  explicit WaitingRoom(int max_waiting) : max_waiting_(max_waiting) {}

  // Null where all places for such a guest are taken.
  std::unique_ptr<Place> Enter(const Guest& guest);
  // The verifier may have room: the first of those that may go there alone, and
  // do not know of any yet, goes and asks. What one that has begun needs is for
  // no new one, whether it knows already or not. The first of those that may go
  // anywhere asks beside it: it may go elsewhere, or not fit there.
  void Call(const VerifierNode* verifier);
  // Whether room there is kept for one that waits before who would be such a
  // guest, or before `own`, where that is in the room.
  bool IsKept(const VerifierNode& verifier, const Guest& guest,
              const Place* own);
  int num_waiting() const;  // that have not begun

 private:
  void Leave(const Place& place);
  void CallFor(const VerifierNode* verifier) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CallNew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Wake(Place& place);
  int NumWaiting() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const int max_waiting_;
  mutable Mutex mu_;
  // They are in the order in which they are called.
  std::vector<Place*> places_ ABSL_GUARDED_BY(mu_);
  std::optional<Clock::time_point> turn_since_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_WAITING_ROOM_H_
