// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_PASS_HOLD_H_
#define OUTRIDER_CORE_ENGINE_PASS_HOLD_H_

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "core/base/session_id.h"
#include "core/engine/pass_time.h"
#include "core/session/node_session.h"

namespace outrider {

// Whether the next pass waits for sessions that were just answered: they come
// back with their next call, and would otherwise split into cohorts, one in a
// pass while the other is on its way. Each token then costs the fixed part of
// two passes: so long it pays to wait, and no longer; only for those that have
// usually been back by then, and for none much longer than it usually takes.
// Where one of those that are here is in the next pass as well, whoever is late
// is too, and waiting pays as far as it spares them more time than it takes
// from the others (docs/adr/0006).
class PassHold {
 public:
  using Clock = NodeSession::Clock;

  explicit PassHold(double max_share) : max_share_(max_share) {}

  // The session, answered now, should be back after so long.
  void Expect(const SessionId& session, Clock::time_point now,
              Clock::duration usual_return) {
    expected_.insert_or_assign(session,
                               Expected{now + usual_return, usual_return});
  }
  // It is back, or will not come.
  void Forget(const SessionId& session) { expected_.erase(session); }
  // Sessions that go on once their rows are taken are as good as back.
  void set_num_going_on(int count) { num_going_on_ = count; }
  // Those that are here, and whether one of them stays (Want).
  struct Ready {
    int num_sessions = 0;
    bool anybody_stays = false;
  };
  void set_ready(const Ready& ready) { ready_ = ready; }

  // Whether a pass, for which there are rows to run, is held now.
  bool Holds(Clock::time_point now, const PassTime& pass_time);
  // Whether it would be for a session that is usually back after so long.
  bool WouldHold(Clock::duration usual_return,
                 const PassTime& pass_time) const {
    const Clock::duration longest = Longest(pass_time);
    return longest > Clock::duration::zero() && usual_return <= longest;
  }
  // The pass begins. Who has not come in time is not waited for again.
  void PassBegins(Clock::time_point now) {
    NothingToRun();
    absl::erase_if(expected_,
                   [&](const auto& entry) { return entry.second.time <= now; });
  }
  void NothingToRun() {
    start_.reset();
    end_.reset();
  }

  // A held pass waits until then at most, and while somebody is missing.
  std::optional<Clock::time_point> end() const { return end_; }
  bool IsHolding() const {
    return end_.has_value() && (num_going_on_ > 0 ||
                                std::any_of(expected_.begin(), expected_.end(),
                                            [&](const auto& entry) {
                                              return entry.second.time <= *end_;
                                            }));
  }

 private:
  struct Expected {
    Clock::time_point time = {};
    Clock::duration usual_return = {};
  };

  // Who is late is waited for as long again as it usually takes, or so much of
  // the longest hold, as a busy machine delays the quickest.
  static constexpr double kPatience = 0.15;

  // How much of the longest hold is for those that should be back by then.
  double ShareForReturns(Clock::time_point latest) const;
  Clock::duration Longest(const PassTime& pass_time) const {
    return Share(max_share_, pass_time.Fixed());
  }
  static Clock::duration Share(double share, Clock::duration time) {
    return std::chrono::duration_cast<Clock::duration>(share * time);
  }

  const double max_share_;
  absl::flat_hash_map<SessionId, Expected> expected_;
  int num_going_on_ = 0;
  Ready ready_ = {};
  std::optional<Clock::time_point> start_;  // of what could be a pass
  std::optional<Clock::time_point> end_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_PASS_HOLD_H_
