// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/pulse.h"

#include <algorithm>
#include <utility>

namespace outrider {

void Pulse::Heard(Clock::time_point now) {
  MutexLock lock(mu_);
  HeardLocked(now);
}

void Pulse::Asked(Clock::time_point now) {
  MutexLock lock(mu_);
  if (!asked_at_.has_value()) asked_at_ = now;
}

bool Pulse::Answered(Clock::duration took, Clock::time_point now) {
  auto pace = std::chrono::ceil<FailureLimit::Duration>(took);
  MutexLock lock(mu_);
  // A node that was only slow has a third more of time, and then more again.
  if (was_given_up_) pace = std::min(pace, limit_.Get() / (kMargin - 1));
  limit_.Answered(pace);
  HeardLocked(now);
  return std::exchange(was_given_up_, false);
}

void Pulse::Refused() {
  MutexLock lock(mu_);
  asked_at_.reset();
}

Pulse::Clock::time_point Pulse::heard_at() const {
  MutexLock lock(mu_);
  return heard_at_;
}

bool Pulse::IsQuiet(Clock::time_point now) const {
  MutexLock lock(mu_);
  return !calls_.empty() && now - std::max(heard_at_, waits_since_) > kQuiet;
}

bool Pulse::IsSilent(Clock::time_point now,
                     Clock::time_point other_heard_at) const {
  MutexLock lock(mu_);
  return asked_at_.has_value() && now - *asked_at_ > limit_.Get() &&
         other_heard_at > *asked_at_;
}

void Pulse::GiveUp() {
  MutexLock lock(mu_);
  was_given_up_ = true;
  for (Call* call : calls_) call->cancellation().Cancel();
}

void Pulse::ListenAnew(Clock::time_point now) {
  MutexLock lock(mu_);
  heard_at_ = now;
  if (asked_at_.has_value()) asked_at_ = now;
}

std::list<Pulse::Call*>::iterator Pulse::Enter(Call& call) {
  MutexLock lock(mu_);
  if (calls_.empty()) waits_since_ = Clock::now();
  return calls_.insert(calls_.end(), &call);
}

void Pulse::Leave(std::list<Call*>::iterator place) {
  MutexLock lock(mu_);
  calls_.erase(place);
}

void Pulse::HeardLocked(Clock::time_point now) {
  heard_at_ = now;
  asked_at_.reset();
}

}  // namespace outrider
