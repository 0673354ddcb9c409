// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/move_gate.h"

#include <algorithm>
#include <utility>

#include "core/base/child_cancellation.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

// A node may be asked again for what it has just refused, but not at once.
constexpr milliseconds kShortestNap(5);
// What takes longer is foreseen by a mistake.
constexpr std::chrono::hours kLongestText(1);
// Other nodes come and go meanwhile, and their gates open.
constexpr milliseconds kLongestNap(200);

}  // namespace

MoveGate::Turn& MoveGate::Turn::operator=(Turn&& other) noexcept {
  End({});
  gate_ = std::exchange(other.gate_, nullptr);
  num_tokens_ = other.num_tokens_;
  expected_ = other.expected_;
  entered_ = other.entered_;
  return *this;
}

void MoveGate::Turn::End(const Outcome& outcome) {
  if (gate_ == nullptr) return;
  std::exchange(gate_, nullptr)->Leave(*this, outcome);
}

MoveGate::Place::Place(MoveGate& gate, std::optional<Clock::time_point> rank)
    : gate_(gate), rank_(rank) {
  MutexLock lock(gate_.mu_);
  gate_.AddLocked(this);
}

MoveGate::Place::~Place() {
  MutexLock lock(gate_.mu_);
  const bool was_first = position_ == gate_.line_.begin();
  gate_.line_.erase(position_);
  if (was_first) gate_.WakeFirstLocked();
}

MoveGate::Turn MoveGate::Place::Enter(int num_tokens, Clock::time_point now) {
  MutexLock lock(gate_.mu_);
  const bool is_first = position_ == gate_.line_.begin();
  if (!is_first || !gate_.IsFreeLocked(now)) return {};
  return gate_.EnterLocked(num_tokens, now);
}

Task<void> MoveGate::Place::WaitForTurn(Timer& timer,
                                        Cancellation& cancellation) {
  ChildCancellation sleep(cancellation);
  milliseconds longest;
  {
    MutexLock lock(gate_.mu_);
    longest = gate_.LongestNapLocked(*this);
    sleep_ = &sleep.get();
  }
  co_await timer.Sleep(longest, sleep.get());
  MutexLock lock(gate_.mu_);
  sleep_ = nullptr;
}

bool MoveGate::IsOpen(Clock::time_point now) const {
  MutexLock lock(mu_);
  return line_.empty() && IsFreeLocked(now);
}

MoveGate::Turn MoveGate::Enter(int num_tokens, Clock::time_point now) {
  MutexLock lock(mu_);
  if (!line_.empty() || !IsFreeLocked(now)) return {};
  return EnterLocked(num_tokens, now);
}

MoveGate::Turn MoveGate::EnterLocked(int num_tokens, Clock::time_point now) {
  Turn turn;
  turn.gate_ = this;
  turn.num_tokens_ = num_tokens;
  turn.expected_ = std::chrono::duration_cast<Clock::duration>(
      std::min<std::chrono::duration<double>>(
          std::chrono::duration<double>(num_tokens * seconds_per_token_),
          kLongestText));
  turn.entered_ = entered_.insert(now);
  expected_ += turn.expected_;
  opens_at_ = now + kShare * turn.expected_;
  return turn;
}

void MoveGate::StartAnew() {
  MutexLock lock(mu_);
  next_at_ = {};
  opens_at_ = {};
  WakeFirstLocked();
}

void MoveGate::Leave(const Turn& turn, const Outcome& outcome) {
  const Clock::duration taken = outcome.taken;
  const int num_tokens = turn.num_tokens_;
  MutexLock lock(mu_);
  entered_.erase(turn.entered_);
  expected_ -= turn.expected_;
  if (outcome.next_at.has_value()) {
    // Answers may come in another order than that in which they were given.
    next_at_ = std::max(next_at_, *outcome.next_at);
    opens_at_ = next_at_;
    if (!entered_.empty()) {
      opens_at_ = std::max(next_at_, *entered_.begin()) + kShare * expected_;
    }
  } else {
    opens_at_ += kShare * (taken - turn.expected_);
  }
  if (taken > Clock::duration::zero() && num_tokens > 0) {
    const double rate =
        std::chrono::duration<double>(taken).count() / num_tokens;
    seconds_per_token_ =
        seconds_per_token_ == 0 ? rate : (3 * seconds_per_token_ + rate) / 4;
  }
  WakeFirstLocked();
}

bool MoveGate::HasPlaceLocked() const {
  return static_cast<int>(entered_.size()) <
         (seconds_per_token_ == 0 ? 1 : kMostTurns);
}

void MoveGate::AddLocked(Place* place) {
  for (auto position = line_.begin(); position != line_.end(); ++position) {
    const Place& other = **position;
    const bool have_ranks = place->rank_.has_value() && other.rank_.has_value();
    if (!have_ranks || *other.rank_ <= *place->rank_) continue;
    place->position_ = position;
    std::swap(*position, place);
  }
  place->position_ = line_.insert(line_.end(), place);
}

void MoveGate::WakeFirstLocked() {
  if (line_.empty() || line_.front()->sleep_ == nullptr) return;
  line_.front()->sleep_->Cancel();
}

milliseconds MoveGate::LongestNapLocked(const Place& place) const {
  // Who is not first, or finds no place, is woken.
  if (line_.front() != &place || !HasPlaceLocked()) return kLongestNap;
  const auto left = std::chrono::ceil<milliseconds>(opens_at_ - Clock::now());
  return std::clamp(left, kShortestNap, kLongestNap);
}

}  // namespace outrider
