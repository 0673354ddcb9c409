// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_ROOM_WAIT_H_
#define OUTRIDER_CORE_ENGINE_ROOM_WAIT_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "core/base/session_id.h"
#include "core/engine/job.h"
#include "core/session/node_session.h"

namespace outrider {

// Who waits for KV blocks that work of others holds. The oldest live session
// among them comes first: where rounds that end soon will have given it enough,
// no younger one is admitted, so that these come to rest one after the other
// and may be preempted for it. Else each would take, in its turn, what the one
// before has given back. A stream that has begun and was refused comes again:
// it is waited for as if it were here. Confined to the scheduler.
class RoomWait {
 public:
  using Clock = Job::Clock;

  // A call that holds up no stream, such as a draft, is refused at the first
  // look after so long, which comes between passes: the session goes on without
  // it. What does hold one up keeps its place, and is moved by its coordinator
  // where another node has room.
  static constexpr std::chrono::milliseconds kLongest{100};

  // Who was refused comes again within the longest delay that it is told (1 s),
  // and half of that. Who does not, as it has room elsewhere, is waited for no
  // longer.
  static constexpr std::chrono::milliseconds kComesAgain{2000};

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
    if (session == nullptr) return;
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
  // The session's call is gone, or was admitted.
  void Ended(const SessionId& session) {
    if (IsFirst(session)) first_.reset();
  }
  // A call was refused, or waits to open a session, that holds up a stream.
  void Refused(const SessionId& session, Clock::time_point now) {
    refused_until_[session] = now + kComesAgain;
  }
  // The session has room now, or needs none any more.
  void Settled(const SessionId& session) { refused_until_.erase(session); }
  void Expire(Clock::time_point now) {
    absl::erase_if(refused_until_,
                   [now](const auto& entry) { return entry.second <= now; });
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
  // Whether streams that have not begun are to leave room to one that has.
  bool AwaitsStream(Clock::time_point now) const {
    return std::any_of(refused_until_.begin(), refused_until_.end(),
                       [now](const auto& entry) { return entry.second > now; });
  }

 private:
  struct First {
    SessionId session = {};
    uint64_t age_rank = 0;
  };

  std::optional<First> first_;
  absl::flat_hash_map<SessionId, Clock::time_point> refused_until_;
  uint64_t num_changes_ = 1;
  bool is_awaited_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_ROOM_WAIT_H_
