// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/waiting_room.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/child_cancellation.h"

namespace outrider {

void WaitingRoom::Place::WasRefusedBy(Verifiers verifiers) {
  MutexLock lock(room_.mu_);
  refused_by_ = std::move(verifiers);
}

bool WaitingRoom::Place::NeedsAll(const VerifierNode& verifier, int text_length,
                                  Clock::time_point now) const {
  return guest_.kind != Kind::kHeld && text_length < guest_.text_length &&
         now - entered_at_ >= kPatience &&
         absl::c_linear_search(refused_by_, &verifier) &&
         (!asks_since_.has_value() || now - *asks_since_ <= longest_refusal_);
}

Task<void> WaitingRoom::Place::Wait(Timer& timer,
                                    std::chrono::milliseconds longest,
                                    Cancellation& cancellation) {
  ChildCancellation sleep(cancellation);
  {
    MutexLock lock(room_.mu_);
    if (asks_since_.has_value()) {
      const Clock::duration last = Clock::now() - *asks_since_;
      longest_refusal_ = std::max<Clock::duration>(kLongestRefusal, 2 * last);
      asks_since_.reset();
    }
    sleep_ = &sleep.get();
    if (is_called_) sleep_->Cancel();
  }
  co_await timer.Sleep(longest, sleep.get());
  MutexLock lock(room_.mu_);
  sleep_ = nullptr;
  is_called_ = false;
  asks_since_ = Clock::now();
}

std::unique_ptr<WaitingRoom::Place> WaitingRoom::Enter(const Guest& guest) {
  const int64_t most =
      int64_t{max_waiting_} * (guest.kind == Kind::kResumed ? 2 : 1);
  MutexLock lock(mu_);
  if (guest.kind != Kind::kHeld && NumWaiting() >= most) return nullptr;
  auto place = std::make_unique<Place>(*this, guest);
  const auto behind = std::find_if(
      places_.begin(), places_.end(),
      [&](const Place* other) { return other->guest_.kind > guest.kind; });
  places_.insert(behind, place.get());
  return place;
}

void WaitingRoom::Call(const VerifierNode* verifier) {
  MutexLock lock(mu_);
  CallFor(verifier);
}

bool WaitingRoom::IsKept(const VerifierNode& verifier, const Guest& guest,
                         const Place* own) {
  const Clock::time_point now = Clock::now();
  MutexLock lock(mu_);
  for (Place* place : places_) {
    if (place == own || place->guest_.kind > guest.kind) return false;
    if (!place->NeedsAll(verifier, guest.text_length, now)) continue;
    // A turn begins with the first that it keeps out.
    if (!turn_since_.has_value() || now - *turn_since_ >= 2 * kLongestKept) {
      turn_since_ = now;
    }
    return now - *turn_since_ < kLongestKept;
  }
  return false;
}

int WaitingRoom::num_waiting() const {
  MutexLock lock(mu_);
  return NumWaiting();
}

int WaitingRoom::NumWaiting() const {
  return static_cast<int>(std::count_if(
      places_.begin(), places_.end(),
      [](const Place* place) { return place->guest_.kind != Kind::kHeld; }));
}

void WaitingRoom::Leave(const Place& place) {
  MutexLock lock(mu_);
  std::erase(places_, &place);
  if (place.guest_.kind == Kind::kHeld) {
    CallFor(place.guest_.at);
  } else {
    CallNew();
  }
}

void WaitingRoom::CallFor(const VerifierNode* verifier) {
  bool is_needed = false;
  bool is_any_called = false;  // of those that may go anywhere
  for (Place* place : places_) {
    const Guest& guest = place->guest_;
    if (guest.kind != Kind::kHeld) break;
    if (guest.at != nullptr && guest.at != verifier) continue;
    const bool may_go_anywhere = guest.at == nullptr;
    is_needed = is_needed || !may_go_anywhere;
    if (place->is_called_ || (may_go_anywhere && is_any_called)) continue;
    Wake(*place);
    if (!may_go_anywhere) return;
    is_any_called = true;
  }
  if (!is_needed) CallNew();
}

void WaitingRoom::CallNew() {
  const auto next =
      std::find_if(places_.begin(), places_.end(), [](const Place* place) {
        return place->guest_.kind != Kind::kHeld && !place->is_called_;
      });
  if (next != places_.end()) Wake(**next);
}

void WaitingRoom::Wake(Place& place) {
  place.is_called_ = true;
  if (place.sleep_ != nullptr) place.sleep_->Cancel();
}

}  // namespace outrider
