// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_PASS_HOLD_H_
#define OUTRIDER_CORE_ENGINE_PASS_HOLD_H_

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/session_id.h"
#include "core/engine/pass_time.h"
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

  // The session should be back at this time, with so many rows.
  void Expect(const SessionId& session, Clock::time_point time, int num_rows) {
    Forget(session);
    expected_.push_back({session, time, num_rows});
  }
  // It is back, or will not come.
  void Forget(const SessionId& session) {
    std::erase_if(expected_, [&](const Expected& expected) {
      return expected.session == session;
    });
  }
  // Sessions that go on once their rows are taken are as good as back.
  void set_num_going_on(int count) { num_going_on_ = count; }

  // Whether a pass that has so many rows to run is held now. Its time is that
  // with all who are waited for: one row alone says little of it.
  bool Holds(Clock::time_point now, int num_rows, const PassTime& pass_time) {
    if (!start_.has_value()) start_ = now;
    const Clock::time_point latest =
        End(num_rows + RowsBackBy(Clock::time_point::max()), pass_time);
    end_ = End(num_rows + RowsBackBy(latest), pass_time);
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
           (num_going_on_ > 0 || std::any_of(expected_.begin(), expected_.end(),
                                             [&](const Expected& expected) {
                                               return expected.time <= *end_;
                                             }));
  }

 private:
  struct Expected {
    SessionId session = {};
    Clock::time_point time = {};
    int num_rows = 0;
  };

  int RowsBackBy(Clock::time_point time) const {
    int num_rows = 0;
    for (const Expected& expected : expected_) {
      if (expected.time <= time) num_rows += expected.num_rows;
    }
    return num_rows;
  }
  // A pass of so many rows may be held until then.
  Clock::time_point End(int num_rows, const PassTime& pass_time) const {
    return *start_ + std::chrono::duration_cast<Clock::duration>(
                         max_share_ * pass_time.Predict(num_rows));
  }

  const double max_share_;
  std::vector<Expected> expected_;
  int num_going_on_ = 0;
  std::optional<Clock::time_point> start_;  // of what could be a pass
  std::optional<Clock::time_point> end_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_PASS_HOLD_H_
