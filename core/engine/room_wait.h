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

  // A call that holds up no stream, a draft, waits for no longer: the session
  // goes on without it. What does hold one up keeps its place, and is moved by
  // its coordinator where another node has room.
  static constexpr std::chrono::milliseconds kLongest{1000};

  // Those that wait are gone through once more.
  void SweepBegins() { is_awaited_ = false; }
  // Whether anybody waits, of those that the sweep has come to.
  bool is_awaited() const { return is_awaited_; }
  // Blocks may have come free: it is worth while to try again.
  void Changed() { ++num_changes_; }
  // Whether the job was tried since the last change.
  bool WasTried(const Job& job) const { return job.tried_at == num_changes_; }

  // The job has found no room; `session` is its own, nullptr for an opening.
  // Whether rounds that end soon will give it enough.
  void FoundNone(Job& job, const NodeSession* session, bool comes_soon) {
    job.tried_at = num_changes_;
    if (session == nullptr || job.is_ahead()) return;
    if (!comes_soon) {
      Ended(session->id);
    } else if (!first_.has_value() || session->age_rank < first_->age_rank) {
      first_ = {session->id, session->age_rank};
    }
  }
  // The job is to wait. True where it has waited for too long.
  bool Waits(Job& job, Clock::time_point now) {
    is_awaited_ = true;
    if (!job.waits_since.has_value()) job.waits_since = now;
    return !job.holds_up_stream() && now - *job.waits_since > kLongest;
  }
  // The session's call was admitted, or is gone.
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
