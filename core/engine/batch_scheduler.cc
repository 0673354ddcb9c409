// SPDX-License-Identifier: Apache-2.0
#include "core/engine/batch_scheduler.h"

#include <algorithm>
#include <variant>

#include "absl/status/status.h"
#include "core/base/check.h"
#include "core/base/mutant.h"

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

}  // namespace

BatchScheduler::BatchScheduler(Options options)
    : options_(options), sessions_(options.sessions), hold_(options.max_hold) {
  metrics_.num_blocks = options.sessions.num_blocks;
}

void BatchScheduler::Submit(std::unique_ptr<Work> work, Clock::time_point now) {
  const bool is_welcome = IsWelcome(*work);
  ++num_jobs_;
  hold_.Forget(work->request().header.session);
  auto job = std::make_unique<Job>(std::move(work), now);
  if (is_lost_) {
    End(std::move(job), DeviceLost(), now);
  } else if (!is_welcome) {
    End(std::move(job), sessions_.TryLater("this node's queue is full"), now);
  } else {
    waiting_.push_back(std::move(job));
    AdmitWaiting(now);
  }
  UpdateMetrics();
}

bool BatchScheduler::IsWelcome(const Work& work) const {
  // Load never ends a live session: there are no more of those than may be
  // opened, and each has one call.
  const bool opens = work.request().header.incarnation.is_none();
  const int most =
      options_.max_queue_length + (opens ? 0 : options_.sessions.max_sessions);
  return num_jobs_ < most;
}

void BatchScheduler::AdmitWaiting(Clock::time_point now) {
  Queue still_waiting;
  while (!waiting_.empty()) {
    std::unique_ptr<Job> job = PopFront(waiting_);
    const Work::Request& request = job->work->request();
    if (sessions_.IsAtWork(request.header.session)) {
      still_waiting.push_back(std::move(job));
      continue;
    }
    absl::StatusOr<NodeSessions::Outcome> outcome = sessions_.Admit(
        request.header, request.content_digest, request.num_draft_tokens, now);
    if (!outcome.ok()) {
      End(std::move(job), outcome.status(), now);
    } else if (const Miss* miss = std::get_if<Miss>(&*outcome)) {
      job->ending.miss = *miss;
      End(std::move(job), absl::OkStatus(), now);
    } else if (std::holds_alternative<NodeSessions::Wait>(*outcome)) {
      still_waiting.push_back(std::move(job));
    } else {
      Begin(std::move(job), std::get<NodeSession*>(*outcome));
    }
  }
  waiting_ = std::move(still_waiting);
}

void BatchScheduler::Begin(std::unique_ptr<Job> job, NodeSession* session) {
  job->session = session;
  job->want = job->work->Begin(*session);
  const CacheDelta& delta = job->work->request().header.delta;
  job->num_run = session->log.length() - delta.keep_length;
  if (delta.keep_length == 0 && session->salt.has_value()) {
    metrics_.num_sharable_tokens +=
        static_cast<int64_t>(delta.append_tokens.size());
    metrics_.num_reused_tokens += job->num_run;
  }
  Ready(std::move(job));
}

void BatchScheduler::Ready(std::unique_ptr<Job> job) {
  Queue& queue = job->is_prefill() ? prompts_ : running_;
  queue.push_back(std::move(job));
}

void BatchScheduler::End(std::unique_ptr<Job> job, absl::Status status,
                         Clock::time_point now) {
  if (NodeSession* session = job->session) {
    job->session = nullptr;
    const bool opened = job->work->request().header.incarnation.is_none();
    // An opening that is broken off leaves what nobody has a name for.
    if (status.ok() || (absl::IsCancelled(status) && !opened)) {
      Expect(*session, now);
      sessions_.EndRound(*session, now);
    } else {
      hold_.Forget(session->id);
      if (absl::IsCancelled(status)) {
        sessions_.Drop(*session);
      } else {
        sessions_.Discard(*session);
      }
    }
  }
  if (status.ok()) {
    const double waited = EngineMetrics::Seconds(now - job->submitted) -
                          job->ending.compute_seconds;
    (job->had_chunks ? metrics_.prefill_queued : metrics_.decode_queued)
        .Observe(std::max(0.0, waited));
  }
  job->ending.status = std::move(status);
  ended_.push_back(std::move(job));
}

void BatchScheduler::Expect(const NodeSession& session, Clock::time_point now) {
  if (session.is_released) return;
  hold_.Expect(session.id, now, session.usual_return);
}

void BatchScheduler::EndAbandoned(Queue& queue, Clock::time_point now) {
  Queue kept;
  while (!queue.empty()) {
    std::unique_ptr<Job> job = PopFront(queue);
    const auto& is_cancelled = job->work->request().is_cancelled;
    const bool is_released =
        job->session != nullptr && job->session->is_released;
    if (is_lost_) {
      End(std::move(job), DeviceLost(), now);
    } else if (is_released || (is_cancelled && is_cancelled())) {
      End(std::move(job), absl::CancelledError("the caller has gone"), now);
    } else {
      kept.push_back(std::move(job));
    }
  }
  queue = std::move(kept);
}

std::optional<Pass> BatchScheduler::NextPass(Clock::time_point now) {
  for (Queue* queue : {&waiting_, &running_, &prompts_}) {
    EndAbandoned(*queue, now);
  }
  AdmitWaiting(now);
  if (running_.empty() && prompts_.empty()) {
    hold_.NothingToRun();
    UpdateMetrics();
    return std::nullopt;
  }
  if (hold_.Holds(now, pass_time_)) return std::nullopt;
  hold_.PassBegins(now);

  Pass pass = {.start = now};
  AddRunning(pass);
  AddChunks(pass);
  last_had_chunk_ = pass.has_chunk;
  metrics_.rows_per_pass.Observe(pass.num_rows);
  metrics_.sessions_per_pass.Observe(static_cast<double>(pass.parts.size()));
  UpdateMetrics();
  return pass;
}

void BatchScheduler::AddRunning(Pass& pass) {
  while (!running_.empty() &&
         (pass.num_rows == 0 ||
          pass.num_rows + running_.front()->num_left() <= options_.max_rows)) {
    std::unique_ptr<Job> job = PopFront(running_);
    const int num_tokens = job->num_left();
    Add(pass, std::move(job), num_tokens);
  }
}

void BatchScheduler::AddChunks(Pass& pass) {
  // Less is not worth a prompt's way through the model, but where it is all.
  const int least = std::min(kKvBlockLength, options_.prefill_chunk);
  int budget = options_.prefill_chunk - pass.num_rows;
  if (budget < least && !last_had_chunk_) budget = options_.prefill_chunk;
  // Those that got a chunk go to the end of the queue: a short prompt does not
  // wait for the whole of a long one.
  while (!prompts_.empty() && budget > 0) {
    const Job& first = *prompts_.front();
    // The last tokens, whose rows are wanted, stay together.
    const int num_head = first.num_left() - first.want.num_rows;
    int num_tokens = std::min(budget, num_head);
    if (first.num_left() <= budget) num_tokens = first.num_left();
    if (num_tokens < least && num_tokens < first.num_left()) return;
    std::unique_ptr<Job> job = PopFront(prompts_);
    job->had_chunks = true;
    ++metrics_.num_chunks;
    Add(pass, std::move(job), num_tokens);
    pass.has_chunk = true;
    budget -= num_tokens;
  }
}

void BatchScheduler::Add(Pass& pass, std::unique_ptr<Job> job, int num_tokens) {
  const bool is_last = num_tokens == job->num_left();
  pass.extensions.push_back(
      {.blocks = job->session->blocks,
       .cached_length = job->session->log.length(),
       .tokens = job->want.tokens.subspan(
           job->num_run,
           OUTRIDER_MUTANT(E3, num_tokens, num_tokens - (is_last ? 0 : 1))),
       .num_rows = is_last ? job->want.num_rows : 0});
  pass.num_rows += num_tokens;
  pass.parts.push_back({std::move(job), num_tokens});
}

void BatchScheduler::EndPass(Pass pass, PassResults results,
                             Clock::time_point now) {
  OUTRIDER_CHECK(results.size() == pass.parts.size());
  const Clock::duration time = now - pass.start;
  pass_time_.Observe(pass.num_rows, time);
  metrics_.pass_time.Observe(EngineMetrics::Seconds(time));
  const size_t count = pass.parts.size();
  for (size_t i = 0; i < count; ++i) {
    std::unique_ptr<Job> job = std::move(pass.parts[i].job);
    auto& result = results[OUTRIDER_MUTANT(E1, i, (i + 1) % count)];
    job->ending.compute_seconds += EngineMetrics::Seconds(time);
    if (!result.ok()) {
      is_lost_ = is_lost_ || absl::IsUnavailable(result.status());
      End(std::move(job), result.status(), now);
      continue;
    }
    const int num_tokens = pass.parts[i].num_tokens;
    sessions_.Extended(*job->session,
                       job->want.tokens.subspan(job->num_run, num_tokens));
    job->num_run += num_tokens;
    if (job->num_left() > 0) {
      Ready(std::move(job));
    } else {
      job->rows = *std::move(result);
      if (job->want.is_last) {
        Expect(*job->session, now);
      } else {
        hold_.set_num_going_on(++num_going_on_);
      }
      to_take_.push_back(std::move(job));
    }
  }
  UpdateMetrics();
}

std::unique_ptr<Job> BatchScheduler::NextToTake() {
  return to_take_.empty() ? nullptr : PopFront(to_take_);
}

void BatchScheduler::Taken(std::unique_ptr<Job> job, Clock::time_point now) {
  if (!job->want.is_last) hold_.set_num_going_on(--num_going_on_);
  const absl::StatusOr<std::optional<Want>> next = std::move(job->taken);
  if (is_lost_) {
    End(std::move(job), DeviceLost(), now);
  } else if (next.ok() && next->has_value()) {
    job->want = **next;
    job->num_run = 0;
    Ready(std::move(job));
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
  sessions_.Expire(now);
  UpdateMetrics();
}

bool BatchScheduler::Truncate(const RequestHeader& header, int length) {
  const bool applied = sessions_.Truncate(header, length);
  UpdateMetrics();
  return applied;
}

bool BatchScheduler::Release(const RequestHeader& header) {
  const bool applied = sessions_.Release(header);
  if (applied) hold_.Forget(header.session);
  UpdateMetrics();
  return applied;
}

bool BatchScheduler::IsOneDecode() const {
  return num_jobs_ == 1 && running_.size() == 1;
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
      static_cast<int>(waiting_.size() + running_.size() + prompts_.size()));
}

}  // namespace outrider
