// SPDX-License-Identifier: Apache-2.0
#include "core/engine/batch_scheduler.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "core/base/retry_delay.h"

namespace outrider {
namespace {

absl::Status DeviceLost() {
  return absl::UnavailableError("this node has lost its device");
}

template <typename Queue>
auto PopFront(Queue& queue) {
  auto job = std::move(queue.front());
  queue.pop_front();
  return job;
}

// Offers each to `take`, in their order. Those that it leaves where they are
// stay. Meanwhile the queue has gaps, and nobody else may look into it: whether
// a job is superseded is asked of waiting_, but not for jobs that are in there,
// which have no session yet.
template <typename Queue, typename Take>
void OfferEach(Queue& queue, const Take& take) {
  if (queue.empty()) return;
  auto kept = queue.begin();
  for (auto& job : queue) {
    take(job);
    if (job != nullptr) *kept++ = std::move(job);
  }
  queue.erase(kept, queue.end());
}

// Who waits for room keeps its lease, also where it is not tried as others come
// first: a pass may take longer than a lease.
template <typename Queue>
void RenewLeases(const Queue& waiting, NodeSessions& sessions,
                 BatchScheduler::Clock::time_point now) {
  for (const auto& job : waiting) {
    if (!job->waits_since.has_value()) continue;
    sessions.Renew(job->work->request().header.session, now);
  }
}

template <typename Queue>
bool HasCallOf(const Queue& waiting, const SessionId& session) {
  return std::any_of(waiting.begin(), waiting.end(), [&](const auto& job) {
    return job->work->request().header.session == session;
  });
}

}  // namespace

BatchScheduler::BatchScheduler(Options options)
    : options_(options),
      sessions_(options.sessions),
      ready_({.prefill_chunk = options.prefill_chunk,
              .max_rows = options.max_rows,
              .max_ahead = options.max_ahead}),
      passes_(options.num_in_flight),
      hold_(options.max_hold) {
  metrics_.num_blocks = options.sessions.num_blocks;
}

void BatchScheduler::Submit(std::unique_ptr<Work> work, Clock::time_point now) {
  const bool is_welcome = IsWelcome(*work);
  ++num_jobs_;
  const SessionId& session = work->request().header.session;
  hold_.Forget(session);
  sessions_.Renew(session, now);
  auto job = std::make_unique<Job>(std::move(work), now);
  if (is_lost_) {
    End(std::move(job), DeviceLost(), now);
  } else if (!is_welcome) {
    End(std::move(job), sessions_.TryLater("this node's queue is full"), now);
  } else {
    waiting_.push_back(std::move(job));
    // What a newer step ends.
    EndAbandoned(ready_.ahead(), now, /*for_room=*/false);
    AdmitWaiting(now);
  }
  UpdateMetrics();
}

bool BatchScheduler::IsWelcome(const Work& work) const {
  // Load never ends a live session: there are no more of those than may be
  // opened, and each has one call. A drafter's may have one ahead beside it; to
  // refuse either there makes a round plain, and no more.
  const bool opens = work.request().header.incarnation.is_none();
  const int most =
      options_.max_queue_length + (opens ? 0 : options_.sessions.max_sessions);
  return num_jobs_ < most;
}

void BatchScheduler::AdmitWaiting(Clock::time_point now) {
  room_wait_.SweepBegins();
  RenewLeases(waiting_, sessions_, now);
  if (room_wait_.has_first()) {
    OfferEach(waiting_, [&](std::unique_ptr<Job>& job) {
      if (room_wait_.IsFirst(job->work->request().header.session)) {
        Admit(job, now);
      }
    });
  }
  OfferEach(waiting_, [&](std::unique_ptr<Job>& job) { Admit(job, now); });
}

void BatchScheduler::Admit(std::unique_ptr<Job>& job, Clock::time_point now) {
  const RequestHeader& header = job->work->request().header;
  const NodeSession* const live = sessions_.Find(header.session);
  if (live != nullptr && live->is_at_work) return;
  const bool is_newcomer = live == nullptr && header.incarnation.is_none();
  const bool leaves_room =
      (live != nullptr || is_newcomer) && room_wait_.HoldsBack(live);
  const bool leaves_streams_room =
      !job->holds_up_stream() && room_wait_.AwaitsStream(now);
  // Nobody waits for room to guess, either.
  const bool is_refused = is_newcomer || job->is_ahead();
  if (is_refused && (leaves_room || leaves_streams_room)) {
    End(std::move(job),
        sessions_.TryLater(
            "streams that have begun wait for room at this node"),
        now);
    return;
  }
  if (!leaves_room && !room_wait_.WasTried(*job) && HasRoom(job, live, now)) {
    return;
  }
  // Else each opening that fits would take what has given way to it.
  if (is_newcomer && job->holds_up_stream()) {
    room_wait_.Refused(header.session, now);
  }
  if (room_wait_.Waits(*job, now)) {
    End(std::move(job),
        sessions_.TryLater("this node's KV cache is full of sessions at work"),
        now);
  }
}

bool BatchScheduler::HasRoom(std::unique_ptr<Job>& job, const NodeSession* live,
                             Clock::time_point now) {
  const Work::Request& request = job->work->request();
  absl::StatusOr<NodeSessions::Outcome> outcome = sessions_.Admit(
      {request.header, request.content_digest, request.num_draft_tokens,
       request.holds_up_stream, request.is_ahead},
      now);
  if (!outcome.ok()) {
    End(std::move(job), outcome.status(), now);
  } else if (const Miss* miss = std::get_if<Miss>(&*outcome)) {
    job->ending.miss = *miss;
    End(std::move(job), absl::OkStatus(), now);
  } else if (const auto* wait = std::get_if<NodeSessions::Wait>(&*outcome)) {
    room_wait_.FoundNone(*job, live, wait->comes_soon);
    return false;
  } else {
    room_wait_.Ended(request.header.session);
    room_wait_.Settled(request.header.session);
    room_wait_.Changed();  // others may have been preempted, or it was cut
    GiveSession(*job, *std::get<NodeSession*>(*outcome), now);
    to_begin_.push_back(std::move(job));
  }
  return true;
}

void BatchScheduler::GiveSession(Job& job, NodeSession& own,
                                 Clock::time_point now) {
  const CacheDelta& delta = job.work->request().header.delta;
  job.session = &own;
  job.admitted = now;
  job.num_run = own.log.length() - delta.keep_length;
  job.is_opening = delta.keep_length == 0;
  num_reprefills_ += job.is_reprefill();
  if (job.is_opening && own.salt.has_value()) {
    metrics_.num_sharable_tokens +=
        static_cast<int64_t>(delta.append_tokens.size());
    metrics_.num_reused_tokens += job.num_run;
  }
  CountGoingOn(job, 1);
}

std::unique_ptr<Job> BatchScheduler::NextToBegin() {
  return to_begin_.empty() ? nullptr : PopFront(to_begin_);
}

void BatchScheduler::Begun(std::unique_ptr<Job> job, Clock::time_point now) {
  CountGoingOn(*job, -1);
  if (absl::Status failure = job->failure; !failure.ok()) {
    End(std::move(job), std::move(failure), now);
  } else {
    ready_.Add(std::move(job));
  }
  UpdateMetrics();
}

bool BatchScheduler::HasBranches(Job& job) {
  const std::vector<Fork> forks = std::move(job.want.forks);
  const int num_wanted = static_cast<int>(forks.size());
  // Who waits for room gets it before anybody guesses on.
  const int num_made =
      room_wait_.is_awaited() ? 0 : sessions_.MakeBranches(*job.session, forks);
  metrics_.num_branches += num_made;
  metrics_.num_branches_without_room += num_wanted - num_made;
  job.want.forks.clear();
  job.want.branches.resize(num_made);
  return num_made > 0;
}

absl::Status BatchScheduler::ReasonToEnd(const Job& job) const {
  if (is_lost_) return DeviceLost();
  if (!job.failure.ok()) return job.failure;
  if (IsSuperseded(job)) return absl::CancelledError("a newer step has come");
  const bool is_released = job.session != nullptr && job.session->is_released;
  if (is_released || job.is_cancelled()) {
    return absl::CancelledError("the caller has gone");
  }
  if (job.gives_way() && HasCallOf(waiting_, *job.session->gives_way_to)) {
    return absl::ResourceExhaustedError(
        "a stream that has begun needs room at this node");
  }
  return absl::OkStatus();
}

// Those that give way end by themselves, for_room: not where others that end
// leave enough.
void BatchScheduler::EndAbandoned(Queue& queue, Clock::time_point now,
                                  bool for_room) {
  OfferEach(queue, [&](std::unique_ptr<Job>& job) {
    if (job->num_in_passes > 0 || (for_room && !job->gives_way())) return;
    absl::Status reason = ReasonToEnd(*job);
    const bool is_for_room =
        job->gives_way() && absl::IsResourceExhausted(reason);
    if (reason.ok() || is_for_room != for_room) return;
    if (!is_lost_ && job->failure.ok() && IsSuperseded(*job)) {
      ++metrics_.num_superseded;
    }
    End(std::move(job), std::move(reason), now);
  });
}

void BatchScheduler::CountGoingOn(const Job& job, int change) {
  (job.is_ahead() ? num_ahead_going_on_ : num_going_on_) += change;
  hold_.set_num_going_on(NumGoingOn());
}

int BatchScheduler::NumGoingOn() const {
  // Nobody is held for work ahead but its like.
  return num_going_on_ + (ready_.IsAllAhead() ? num_ahead_going_on_ : 0);
}

std::unique_ptr<Job> BatchScheduler::NextToTake() {
  return to_take_.empty() ? nullptr : PopFront(to_take_);
}

void BatchScheduler::Taken(std::unique_ptr<Job> job, Clock::time_point now) {
  if (!job->want.is_last) CountGoingOn(*job, -1);
  job->has_taken = true;
  absl::StatusOr<std::optional<Want>> next = std::move(job->taken);
  const bool goes_on = next.ok() && next->has_value();
  if (goes_on) {
    job->want = **std::move(next);
    job->num_run = 0;
    if (const auto length = job->want.keep_length) {
      // Nobody waits for it to come back: it never left.
      hold_.Forget(job->session->id);
      metrics_.num_refused_tokens += job->session->log.length() - *length;
      sessions_.TakeBack(*job->session, *length);
    }
  }
  if (is_lost_) {
    End(std::move(job), DeviceLost(), now);
  } else if (goes_on && (job->want.forks.empty() || HasBranches(*job))) {
    ready_.Add(std::move(job));
  } else {
    End(std::move(job), next.status(), now);
  }
  UpdateMetrics();
}

std::unique_ptr<Job> BatchScheduler::NextEnded() {
  if (ended_.empty()) return nullptr;
  --num_jobs_;
  return PopFront(ended_);
}

void BatchScheduler::Expire(Clock::time_point now) {
  RenewLeases(waiting_, sessions_, now);
  sessions_.Expire(now);
  room_wait_.Expire(now);
  room_wait_.Changed();
  UpdateMetrics();
}

bool BatchScheduler::Truncate(const RequestHeader& header, int length) {
  const bool applied = sessions_.Truncate(header, length);
  if (applied) room_wait_.Changed();
  UpdateMetrics();
  return applied;
}

bool BatchScheduler::Release(const RequestHeader& header) {
  const bool applied = sessions_.Release(header);
  room_wait_.Settled(header.session);
  if (applied) {
    hold_.Forget(header.session);
    room_wait_.Changed();
  }
  UpdateMetrics();
  return applied;
}

bool BatchScheduler::HasJobToHandOut() const {
  return !to_begin_.empty() || !to_take_.empty() || !ended_.empty();
}

bool BatchScheduler::IsOneDecode() const {
  return num_jobs_ == 1 && ready_.IsOneShortWork();
}

void BatchScheduler::UpdateMetrics() {
  // Each is right by itself, so none waits for another to be seen.
  const auto set = [](auto& metric, auto value) {
    metric.store(value, std::memory_order_relaxed);
  };
  const KvBlockPool& blocks = sessions_.blocks();
  set(metrics_.num_blocks_used, blocks.num_total() - blocks.num_free());
  set(metrics_.num_blocks_shared, blocks.num_shared());
  set(metrics_.num_blocks_kept, blocks.num_free_kept());
  set(metrics_.num_sessions, sessions_.num_sessions());
  set(metrics_.num_cached_tokens, sessions_.num_cached_tokens());
  set(metrics_.num_preempted, sessions_.num_preempted());
  set(metrics_.num_waiting,
      static_cast<int>(ReadyWork::NumAwaited(waiting_) + ready_.num_awaited()));
}

}  // namespace outrider
