// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/polling_turn.h"

namespace outrider {

bool PollingTurn::StandBy() {
  MutexLock lock(mu_);
  uint64_t seen = state_;
  int num_idle = 0;
  while (!is_closed_) {
    if (num_idle < idle_moments_ || seen % 2 == 1) {
      changed_.WaitUntil(mu_, Clock::now() + kMoment);
    } else {
      // Who begins after this looks whether somebody sleeps.
      is_asleep_ = true;
      if (state_ == seen) changed_.Wait(mu_);
      is_asleep_ = false;
    }
    uint64_t now = state_;
    const bool takes_long = now == seen && now % 2 == 1;
    if (takes_long && state_.compare_exchange_strong(now, now + 1)) return true;
    num_idle = now == seen ? num_idle + 1 : 0;
    seen = now;
  }
  return false;
}

void PollingTurn::Close() {
  MutexLock lock(mu_);
  is_closed_ = true;
  changed_.NotifyAll();
}

void PollingTurn::Wake() {
  MutexLock lock(mu_);
  changed_.NotifyAll();
}

}  // namespace outrider
