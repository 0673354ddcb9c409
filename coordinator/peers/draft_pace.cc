// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/draft_pace.h"

#include <algorithm>

namespace outrider {

bool DraftPace::IsWorthAsking(Clock::time_point now) const {
  MutexLock lock(mu_);
  return now >= paused_until_;
}

void DraftPace::Took(double draft_seconds, double saved_seconds,
                     Clock::time_point now) {
  MutexLock lock(mu_);
  if (now < paused_until_) return;  // a call that began before the pause
  lost_seconds_ =
      std::max(-kPatience, lost_seconds_ + draft_seconds - saved_seconds);
  // It has earned its keep since it was tried again.
  if (lost_seconds_ == -kPatience) pause_seconds_ = kFirstPause;
  if (lost_seconds_ <= kPatience) return;
  const double pause = std::max(kPauseToLoss * lost_seconds_, pause_seconds_);
  paused_until_ = now + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(pause));
  pause_seconds_ = std::min(2 * pause, kLongestDoubled);
  lost_seconds_ = 0;
}

}  // namespace outrider
