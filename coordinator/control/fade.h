// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_FADE_H_
#define OUTRIDER_COORDINATOR_CONTROL_FADE_H_

namespace outrider {

// What is left of an observation's weight a round later, in a mean over some so
// many rounds of each session that is at work.
constexpr double FadeOver(double num_rounds, int num_sessions = 1) {
  return 1 - 1 / (num_rounds * num_sessions);
}

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_FADE_H_
