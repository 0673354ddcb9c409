// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_H_
#define OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_H_

#include <array>

#include "coordinator/control/pass_curve.h"

namespace outrider {

// How long a round's drafts may get, as past rounds choose it.
struct DraftLength {
  // More than this are not told from so many.
  static constexpr int kMostDrafts = PassCurve::kMostRows - 1;
  // Where a drafter that is not sure ends (DraftOptions), from never on: above
  // 0 it says how sure it was. Hardly more tokens a second come of stops that
  // lie closer together.
  static constexpr std::array kStops = {1e-30, 0.05, 0.15, 0.4};
  static constexpr int kNumStops = static_cast<int>(kStops.size());

  int num_drafts = 0;  // at most
  int stop = 0;        // of kStops

  friend bool operator==(const DraftLength&, const DraftLength&) = default;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_H_
