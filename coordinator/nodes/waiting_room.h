// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_WAITING_ROOM_H_
#define OUTRIDER_COORDINATOR_NODES_WAITING_ROOM_H_

#include <chrono>
#include <memory>
#include <vector>

#include "coordinator/nodes/timer.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/task.h"

namespace outrider {

// New sessions that no verifier has room for yet, no more than a limit, in the
// order in which they came. Thread-safe.
class WaitingRoom {
 public:
  // One session's place. Used by one coroutine at a time; must not outlive the
  // room.
  class Place {
   public:
    explicit Place(WaitingRoom& room) : room_(room) {}
    Place(const Place&) = delete;
    // Calls the next one: where there was room for one there may be more.
    ~Place() { room_.Leave(*this); }

    // Ends when it is called, which may have been before, or cancelled, and
    // after so long at the latest.
    Task<void> Wait(Timer& timer, std::chrono::milliseconds longest,
                    Cancellation& cancellation);

   private:
    friend class WaitingRoom;

    WaitingRoom& room_;
    // The room's mutex guards these.
    bool is_called_ = false;         // since it last went to ask
    Cancellation* sleep_ = nullptr;  // where it sleeps
  };

  explicit WaitingRoom(int max_waiting) : max_waiting_(max_waiting) {}

  // Null where all places are taken.
  std::unique_ptr<Place> Enter();
  // A verifier may have room: who came first, of those that do not know of any
  // yet, goes and asks.
  void Call();
  int num_waiting() const;

 private:
  void Leave(const Place& place);
  void CallLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int max_waiting_;
  mutable Mutex mu_;
  std::vector<Place*> places_ ABSL_GUARDED_BY(mu_);  // as they came
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_WAITING_ROOM_H_
