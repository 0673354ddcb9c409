// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/waiting_room.h"

#include <algorithm>

#include "core/base/child_cancellation.h"

namespace outrider {

Task<void> WaitingRoom::Place::Wait(Timer& timer,
                                    std::chrono::milliseconds longest,
                                    Cancellation& cancellation) {
  ChildCancellation sleep(cancellation);
  {
    MutexLock lock(room_.mu_);
    sleep_ = &sleep.get();
    if (is_called_) sleep_->Cancel();
  }
  co_await timer.Sleep(longest, sleep.get());
  MutexLock lock(room_.mu_);
  sleep_ = nullptr;
  is_called_ = false;
}

std::unique_ptr<WaitingRoom::Place> WaitingRoom::Enter() {
  MutexLock lock(mu_);
  if (static_cast<int>(places_.size()) >= max_waiting_) return nullptr;
  auto place = std::make_unique<Place>(*this);
  places_.push_back(place.get());
  return place;
}

void WaitingRoom::Call() {
  MutexLock lock(mu_);
  CallLocked();
}

int WaitingRoom::num_waiting() const {
  MutexLock lock(mu_);
  return static_cast<int>(places_.size());
}

void WaitingRoom::Leave(const Place& place) {
  MutexLock lock(mu_);
  std::erase(places_, &place);
  CallLocked();
}

void WaitingRoom::CallLocked() {
  const auto next =
      std::find_if(places_.begin(), places_.end(),
                   [](const Place* place) { return !place->is_called_; });
  if (next == places_.end()) return;
  (*next)->is_called_ = true;
  if ((*next)->sleep_ != nullptr) (*next)->sleep_->Cancel();
}

}  // namespace outrider
