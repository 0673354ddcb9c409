// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_ROOM_WAIT_H_
#define OUTRIDER_CORE_ENGINE_ROOM_WAIT_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/base/session_id.h"
#include "core/engine/job.h"
#include "core/session/node_session.h"

namespace outrider {

// Who waits for KV blocks that work of others holds. The oldest live session
// among them comes first: where rounds that end soon will have given it enough,
// no younger one is admitted, so that these come to rest one after the other
// and may be preempted for it. Else each would take, in its turn, what the one
// before has given back. Confined to the scheduler.
class RoomWait {
 public:
  using Clock = Job::Clock;

  // A call that has waited for so long is to try later, or at another node.
  static constexpr std::chrono::milliseconds kLongest{1000};

  // Those that wait are offered to the sessions once more.
  void SweepBegins() { is_awaited_ = false; }
  // Whether anybody waited in the last sweep.
  bool is_awaited() const { return is_awaited_; }
  // Blocks have come free, perhaps: it is worth while to try again.
  void Changed() { ++num_changes_; }

  // Whether the job was tried since the last change: it goes on waiting.
  bool StillWaits(const Job& job) {
    const bool waits = job.tried_at == num_changes_;
    is_awaited_ = is_awaited_ || waits;
    return waits;
  }
  // The job has found no room. `session` is its own, nullptr for an opening;
  // whether rounds that end soon will give it enough.
  void Waits(Job& job, const NodeSession* session, bool comes_soon,
             Clock::time_point now) {
    is_awaited_ = true;
    job.tried_at = num_changes_;
    if (!job.waits_since.has_value()) job.waits_since = now;
    if (session == nullptr || job.is_ahead() || !comes_soon) return;
    if (!first_.has_value() || session->age_rank < first_->age_rank) {
      first_ = {session->id, session->age_rank};
    }
  }
  // It was admitted, or is gone.
  void Ended(const SessionId& session) {
    if (IsFirst(session)) first_.reset();
  }

  bool has_first() const { return first_.has_value(); }
  bool IsFirst(const SessionId& session) const {
    return first_.has_value() && first_->session == session;
  }
  // Whether the session, or a newcomer for nullptr, is to leave it the room.
  bool HoldsBack(const NodeSession* session) const {
    return first_.has_value() &&
           (session == nullptr || session->age_rank > first_->age_rank);
  }

 private:
  struct First {
    SessionId session = {};
    uint64_t age_rank = 0;
  };

  std::optional<First> first_;
  uint64_t num_changes_ = 1;
  bool is_awaited_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_ROOM_WAIT_H_
