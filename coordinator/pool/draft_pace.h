// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_DRAFT_PACE_H_
#define OUTRIDER_COORDINATOR_POOL_DRAFT_PACE_H_

#include <algorithm>
#include <chrono>

#include "coordinator/peers/failure_limit.h"

namespace outrider {

// How long a drafter may not answer before it counts as failed: far above its
// slowest answer of late, and far above so many of its slowest passes as the
// call may take, so that a long draft is not given up because the ones before
// it were short. Drafts that were given up raise the limit, too: the slowest of
// those that were answered would tell of the fast ones alone. Thread-safe;
// shared by a node's sessions.
class DraftPace {
 public:
  using Duration = std::chrono::milliseconds;

  // `least`: of a drafter that is fast, or not known yet.
  explicit DraftPace(Duration least) : least_(least) {}

  // How long a call for so many drafts may take.
  Duration Limit(int num_drafts) const {
    return least_ + std::max(call_.Get(), num_drafts * pass_.Get());
  }
  // num_passes > 0.
  void Answered(int num_passes, Duration took) {
    call_.Answered(took);
    pass_.Answered((took + Duration(num_passes - 1)) / num_passes);
  }
  // It was given up at this limit. The next one like it gets more than twice as
  // long, up to half a minute. It would be eight times as long if the limit
  // counted as an answer, which is too long to wait for a drafter that hangs.
  void Late(int num_drafts, Duration limit) {
    Answered(num_drafts, std::min(limit / 4, kLongestTakenForAnAnswer));
  }

 private:
  static constexpr Duration kLongestTakenForAnAnswer{4000};

  const Duration least_;
  FailureLimit call_{Duration(0)};
  FailureLimit pass_{Duration(0)};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_DRAFT_PACE_H_
