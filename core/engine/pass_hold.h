// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_PASS_HOLD_H_
#define OUTRIDER_CORE_ENGINE_PASS_HOLD_H_

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/session_id.h"
#include "core/session/node_session.h"

namespace outrider {

// Whether the next pass waits for sessions that were just answered: they come
// back with their next call, and would otherwise split into cohorts, one in a
// pass while the other is on its way. It waits for a share of the pass's own
// time, and only for those that have usually been back by then.
class PassHold {
 public:
  using Clock = NodeSession::Clock;

  explicit PassHold(double max_share) : max_share_(max_share) {}

  // The session should be back at this time.
  void Expect(const SessionId& session, Clock::time_point time) {
    expected_.push_back({session, time});
  }
  // It is back, or will not come.
  void Forget(const SessionId& session) {
    std::erase_if(expected_, [&](const Expected& expected) {
      return expected.session == session;
    });
  }
  // Sessions whose rows are being taken are as good as back.
  void set_num_taking(int count) { num_taking_ = count; }

  // Whether a pass that has what to run, and will take so long, is held now.
  bool Holds(Clock::time_point now, Clock::duration pass_time) {
    if (!start_.has_value()) start_ = now;
    end_ = *start_ +
           std::chrono::duration_cast<Clock::duration>(max_share_ * pass_time);
    if (now < *end_ && IsHolding()) return true;
    end_.reset();
    return false;
  }
  // The pass begins. Who has not come in time is not waited for again.
  void PassBegins(Clock::time_point now) {
    NothingToRun();
    std::erase_if(expected_, [&](const Expected& expected) {
      return expected.time <= now;
    });
  }
  void NothingToRun() {
    start_.reset();
    end_.reset();
  }

  // A held pass waits until then at most, and while somebody is missing.
  std::optional<Clock::time_point> end() const { return end_; }
  bool IsHolding() const {
    return end_.has_value() &&
           (num_taking_ > 0 || std::any_of(expected_.begin(), expected_.end(),
                                           [&](const Expected& expected) {
                                             return expected.time <= *end_;
                                           }));
  }

 private:
  struct Expected {
    SessionId session = {};
    Clock::time_point time = {};
  };

  const double max_share_;
  std::vector<Expected> expected_;
  int num_taking_ = 0;
  std::optional<Clock::time_point> start_;  // of what could be a pass
  std::optional<Clock::time_point> end_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_PASS_HOLD_H_
