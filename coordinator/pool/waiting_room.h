// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_WAITING_ROOM_H_
#define OUTRIDER_COORDINATOR_POOL_WAITING_ROOM_H_

#include <atomic>
#include <memory>
#include <utility>

namespace outrider {

// New sessions that no verifier has room for yet, no more than a limit. Thread-
// safe.
class WaitingRoom {
 public:
  struct Leave {
    void operator()(WaitingRoom* room) const { --room->num_waiting_; }
  };
  using Place = std::unique_ptr<WaitingRoom, Leave>;

  explicit WaitingRoom(int max_waiting) : max_waiting_(max_waiting) {}

  // Null where all places are taken.
  Place Enter() {
    Place place(this);
    return ++num_waiting_ <= max_waiting_ ? std::move(place) : nullptr;
  }
  int num_waiting() const { return num_waiting_; }

 private:
  const int max_waiting_;
  std::atomic<int> num_waiting_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_WAITING_ROOM_H_
