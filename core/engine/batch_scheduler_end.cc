// SPDX-License-Identifier: Apache-2.0
// Of BatchScheduler: what jobs leave that end.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "core/base/retry_delay.h"
#include "core/engine/batch_scheduler.h"

namespace outrider {

void BatchScheduler::End(std::unique_ptr<Job> job, absl::Status why,
                         Clock::time_point now) {
  room_wait_.Changed();
  if (job->session == nullptr) {
    const SessionId& session = job->work->request().header.session;
    room_wait_.Ended(session);
    if (IsRefusal(why) && job->holds_up_stream()) {
      room_wait_.Refused(session, now);
    }
  } else {
    // What was admitted fits: what it lacks now, in a pass or beside others, it
    // may have later.
    if (absl::IsResourceExhausted(why)) {
      why = sessions_.TryLater(why.message());
      if (job->holds_up_stream()) room_wait_.Refused(job->session->id, now);
    }
    LeaveSession(*job, why, now);
  }
  // A reply that nobody waits for is lost like a call that ended before it.
  if (job->is_ahead() && (absl::IsCancelled(why) || job->is_cancelled())) {
    metrics_.num_tokens_given_up += job->num_branch_rows;
  }
  job->ending.queue_seconds =
      std::max(0.0, EngineMetrics::Seconds(now - job->submitted) -
                        job->ending.compute_seconds);
  if (why.ok() && !job->is_ahead() && !job->ending.miss.has_value()) {
    (job->had_chunks ? metrics_.prefill_queued : metrics_.decode_queued)
        .Observe(job->ending.queue_seconds);
  }
  num_reprefills_ -= job->is_reprefill();
  if (job->is_moved()) {
    reprefill_budget_.Spend(job->time_of_others, job->admitted);
    job->ending.next_reprefill_in =
        EngineMetrics::Seconds(reprefill_budget_.opens_at() - now);
  }
  job->ending.status = std::move(why);
  ended_.push_back(std::move(job));
}

void BatchScheduler::LeaveSession(Job& job, const absl::Status& why,
                                  Clock::time_point now) {
  NodeSession& session = *job.session;
  const bool opened = job.work->request().header.incarnation.is_none();
  // A pass without memory has left all as it was. The second one in a row may
  // not be the last: where the session has nothing, it goes elsewhere.
  const bool had_no_memory = absl::IsResourceExhausted(why) && !job.gives_way();
  const bool is_first = !std::exchange(session.had_no_memory, had_no_memory);
  // An opening that is broken off leaves what nobody has a name for.
  const bool goes_on =
      why.ok() || (!opened && absl::IsCancelled(why) && !job.gives_way()) ||
      (!opened && had_no_memory && is_first);
  session.is_doubtful = job.work->is_doubtful();
  if (goes_on) {
    // It comes back after a pause, and not after its usual one.
    had_no_memory ? hold_.Forget(session.id) : Expect(job, now);
    sessions_.EndRound(session, now);
  } else {
    hold_.Forget(session.id);
    if (absl::IsResourceExhausted(why) && job.gives_way()) sessions_.GaveWay();
    absl::IsCancelled(why) || absl::IsResourceExhausted(why)
        ? sessions_.Drop(session)
        : sessions_.Discard(session);
  }
  job.session = nullptr;
}

void BatchScheduler::Expect(const Job& job, Clock::time_point now) {
  const NodeSession& session = *job.session;
  if (session.is_released || IsSuperseded(job)) return;
  hold_.Expect(session.id, now, session.usual_return);
}

bool BatchScheduler::IsSuperseded(const Job& job) const {
  if (!job.is_ahead() || job.session == nullptr) return false;
  const RequestHeader& own = job.work->request().header;
  return std::any_of(
      waiting_.begin(), waiting_.end(), [&](const auto& waiting) {
        const RequestHeader& header = waiting->work->request().header;
        return header.session == own.session && header.step > own.step &&
               (header.incarnation.is_none() ||
                header.incarnation == job.session->incarnation);
      });
}

}  // namespace outrider
