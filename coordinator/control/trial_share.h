// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_TRIAL_SHARE_H_
#define OUTRIDER_COORDINATOR_CONTROL_TRIAL_SHARE_H_

#include <algorithm>
#include <cmath>

namespace outrider {

// Which share of the time may go to trials where several sessions draft, who
// try together. The more they are, the more rounds a trial has in the same
// time, and the more it costs afterwards, as it leaves them out of step. So the
// share of one session is divided by the root of their number, of eight at
// most: a crowd has to find out as well what has changed. Where nothing is
// drafted the share stays: there trials alone tell that drafts would pay.
inline double TrialShare(double of_one, int num_sessions) {
  constexpr int kMostSessions = 8;
  return of_one / std::sqrt(std::clamp(num_sessions, 1, kMostSessions));
}

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_TRIAL_SHARE_H_
