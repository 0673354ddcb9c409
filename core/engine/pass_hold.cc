// SPDX-License-Identifier: Apache-2.0
#include "core/engine/pass_hold.h"

#include <algorithm>
#include <vector>

namespace outrider {

bool PassHold::Holds(Clock::time_point now, const PassTime& pass_time) {
  if (!start_.has_value()) start_ = now;
  const Clock::duration longest = Longest(pass_time);
  const Clock::time_point latest = *start_ + longest;
  end_ = num_going_on_ > 0 ? latest : now;
  const Clock::time_point latest_return =
      *start_ + Share(ShareForReturns(latest), longest);
  for (const auto& [session, expected] : expected_) {
    if (expected.time > latest_return) continue;
    const Clock::duration late =
        std::max(expected.usual_return, Share(kPatience, longest));
    end_ = std::max(*end_, std::min(expected.time + late, latest_return));
  }
  if (now < *end_) return true;
  end_.reset();
  return false;
}

double PassHold::ShareForReturns(Clock::time_point latest) const {
  if (!ready_.anybody_stays) return 1;
  // Each of q that come after t spares the rest of a pass, which would begin
  // without it, and p that are here wait: it pays as long as q (a - t) > p t.
  std::vector<Clock::time_point> times;
  for (const auto& [session, expected] : expected_) {
    if (expected.time <= latest) times.push_back(expected.time);
  }
  std::sort(times.begin(), times.end());
  const Clock::duration longest = latest - *start_;
  double share = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const auto num_back = static_cast<double>(i + 1);
    const double paid = num_back / (num_back + ready_.num_sessions);
    if (times[i] - *start_ <= Share(paid, longest)) share = paid;
  }
  return share;
}

}  // namespace outrider
