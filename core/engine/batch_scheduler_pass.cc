// SPDX-License-Identifier: Apache-2.0
// Of BatchScheduler: a pass, from what is ready for it to what its rows lead
// to.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "core/base/check.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/engine/batch_scheduler.h"

namespace outrider {
namespace {

// Whose rows are a text's, which are in few passes, and not a round's.
bool IsText(const Pass::Part& part) {
  return part.job->had_chunks && !part.job->has_taken;
}

int CountRowsOfRounds(const Pass& pass) {
  int num_rows = 0;
  for (const Pass::Part& part : pass.parts) {
    if (!IsText(part)) num_rows += part.num_tokens;
  }
  return num_rows;
}

// A pass that the job was in, and what of it was for its own rows; whether
// anybody else was here, who loses that time.
void CountTime(Job& job, Job::Clock::duration time,
               Job::Clock::duration own_time, bool has_others,
               EngineMetrics& metrics) {
  job.ending.compute_seconds += EngineMetrics::Seconds(time);
  // What an opening took is what its text did, until its first rows.
  if (job.is_opening && job.has_taken) return;
  job.ending.own_seconds += EngineMetrics::Seconds(own_time);
  if (!job.is_reprefill()) return;
  if (has_others && job.is_moved()) job.time_of_others += own_time;
  (has_others ? metrics.reprefill_time_beside_others
              : metrics.reprefill_time_alone) += own_time.count();
}

}  // namespace

std::optional<BatchScheduler::Clock::time_point> BatchScheduler::ask_again_at()
    const {
  if (passes_.empty()) return hold_.end();
  const auto launch = passes_.next_launch(pass_time_, hold_);
  if (!launch.has_value() || !HasReady()) return std::nullopt;
  if (!hold_.IsHolding()) return launch;  // all are back
  return std::max(*launch, *hold_.end());
}

bool BatchScheduler::HasReady() const {
  return !ready_.empty() || passes_.HasPrompt([this](const Job& job) {
    return ReasonToEnd(job).ok();
  });
}

bool BatchScheduler::IsHeld(Clock::time_point now) const {
  // Who waits to be admitted may come to be in the pass as well. And once
  // nobody goes on, how long it is held depends on who is back.
  return hold_.end().has_value() && now < *hold_.end() && NumGoingOn() > 0 &&
         waiting_.empty() && !is_lost_;
}

void BatchScheduler::Sweep(Clock::time_point now) {
  EndAbandoned(waiting_, now, /*for_room=*/false);
  // Texts give way only where the room that has come without them is too small.
  for (const bool for_room : {false, true}) {
    for (Queue* queue : ready_.queues()) EndAbandoned(*queue, now, for_room);
    AdmitWaiting(now);
  }
}

const Pass* BatchScheduler::NextPass(Clock::time_point now) {
  const bool is_beside = !passes_.empty();
  if (is_beside) {
    const auto launch = passes_.next_launch(pass_time_, hold_);
    if (!launch.has_value() || now < *launch) return nullptr;
  }
  if (!HasReady()) {
    hold_.NothingToRun();
    UpdateMetrics();
    return nullptr;
  }
  hold_.set_num_going_on(NumGoingOn());
  hold_.set_ready({.num_sessions = ready_.num_running(),
                   .anybody_stays = ready_.AnybodyStays()});
  if (hold_.Holds(now, pass_time_)) return nullptr;
  for (auto& prompt : passes_.TakePrompts(
           [this](const Job& job) { return ReasonToEnd(job).ok(); })) {
    ready_.Add(std::move(prompt));
  }
  // The caller of a prompt may have gone since it was there to be taken.
  if (ready_.empty()) {
    hold_.NothingToRun();
    return nullptr;
  }
  hold_.PassBegins(now);
  Pass& pass = passes_.Begin(now);
  ready_.Fill(pass, pass_time_);
  metrics_.num_chunks += pass.num_chunks;
  metrics_.num_launched_early += is_beside;
  metrics_.rows_per_pass.Observe(pass.num_rows);
  metrics_.sessions_per_pass.Observe(static_cast<double>(pass.parts.size()));
  UpdateMetrics();
  return &pass;
}

void BatchScheduler::EndPass(PassResults results, Clock::time_point now) {
  Pass& pass = passes_.End(now);
  OUTRIDER_CHECK(results.size() == pass.extensions.size());
  const Clock::duration time = now - pass.start;
  is_lost_ = is_lost_ ||
             std::any_of(results.begin(), results.end(), [](const auto& rows) {
               return absl::IsUnavailable(rows.status());
             });
  // One in which a model went on drawing took the time of several.
  const bool has_gone_on = std::any_of(
      results.begin(), results.end(),
      [](const auto& rows) { return rows.ok() && !rows->drawn().empty(); });
  if (!has_gone_on) pass_time_.Observe(pass.num_rows, time);
  metrics_.pass_time.Observe(EngineMetrics::Seconds(time));
  const auto first = results.begin() + OUTRIDER_MUTANT(E1, 0, 1);
  std::rotate(results.begin(), first, results.end());
  absl::Span<PassResults::value_type> left = absl::MakeSpan(results);
  // Whoever is here, or comes, loses time to a re-prefill, in the pass or not.
  const bool has_others =
      sessions_.num_sessions() > num_reprefills_ || !waiting_.empty();
  const int num_rows_of_rounds = CountRowsOfRounds(pass);
  for (Pass::Part& part : pass.parts) {
    Job& job = *part.job;
    job.num_in_passes -= part.num_tokens;
    if (job.failure.ok()) {
      job.failure = TakeIn(part, left.first(part.num_extensions));
    }
    left.remove_prefix(part.num_extensions);
    // Rounds share what prompts take beside them, which is there whatever they
    // draft.
    const int num_rows = IsText(part) ? pass.num_rows : num_rows_of_rounds;
    CountTime(job, time, time * part.num_tokens / num_rows, has_others,
              metrics_);
    if (part.owner != nullptr) GoOn(std::move(part.owner), now);
  }
  UpdateMetrics();
}

void BatchScheduler::GoOn(std::unique_ptr<Job> job, Clock::time_point now) {
  if (!job->failure.ok()) {
    absl::Status failure = job->failure;
    End(std::move(job), std::move(failure), now);
  } else if (job->num_left() > 0) {
    ready_.Add(std::move(job));
  } else {
    if (job->want.is_last) {
      Expect(*job, now);
    } else {
      CountGoingOn(*job, 1);
    }
    to_take_.push_back(std::move(job));
  }
}

absl::Status BatchScheduler::TakeIn(
    const Pass::Part& part, absl::Span<PassResults::value_type> results) {
  for (const auto& result : results) OUTRIDER_RETURN_IF_ERROR(result.status());
  Job& job = *part.job;
  for (const BranchWant& want : job.want.branches) {
    job.session->branches[want.branch].Extended();
    ++job.num_branch_rows;
  }
  if (job.want.branches.empty()) {
    sessions_.Extended(*job.session,
                       job.want.tokens.subspan(job.num_run, part.num_tokens));
  }
  job.num_run += part.num_tokens;
  if (job.num_left() > 0 || job.num_in_passes > 0) return absl::OkStatus();
  if (job.want.max_drawn > 0) {
    const absl::Span<const TokenId> drawn = results[0]->drawn();
    sessions_.Extended(*job.session, drawn);
    // Then it has all that it can want: nobody is held for it.
    if (static_cast<int>(drawn.size()) == job.want.max_drawn) {
      job.want.is_last = true;
    }
  }
  for (auto& result : results) job.rows.push_back(*std::move(result));
  return absl::OkStatus();
}

}  // namespace outrider
