// SPDX-License-Identifier: Apache-2.0
#include "core/engine/ready_work.h"

#include <algorithm>
#include <utility>

#include "core/base/mutant.h"

namespace outrider {
namespace {

// Who awaits drafts that were made ahead is not kept waiting for ever.
constexpr int kMostPassedOver = 4;

std::unique_ptr<Job> PopFirst(ReadyWork::Queue& queue) {
  std::unique_ptr<Job> job = std::move(queue.front());
  queue.pop_front();
  return job;
}

// The session's own text goes on.
void AddText(Pass& pass, const Job& job, int num_tokens) {
  const bool is_last = num_tokens == job.num_left();
  pass.extensions.push_back(
      {.blocks = job.session->blocks,
       .cached_length = job.session->log.length() + job.num_in_passes,
       .tokens = job.want.tokens.subspan(
           job.num_run + job.num_in_passes,
           OUTRIDER_MUTANT(E3, num_tokens, num_tokens - (is_last ? 0 : 1))),
       .num_rows = is_last ? job.want.num_rows : 0,
       .questions =
           is_last ? job.want.questions : absl::Span<const RowQuestion>(),
       .max_drawn = is_last ? job.want.max_drawn : 0});
}

void AddBranches(Pass& pass, const Job& job) {
  for (size_t i = 0; i < job.want.branches.size(); ++i) {
    const BranchWant& want = job.want.branches[i];
    const Branch& branch = job.session->branches[want.branch];
    pass.extensions.push_back({.blocks = branch.blocks,
                               .cached_length = branch.length,
                               .tokens = {&want.token, 1},
                               .num_rows = 1,
                               .copied_block = branch.copied_block,
                               .questions = job.want.questions.subspan(
                                   std::min(i, job.want.questions.size()), 1)});
  }
}

void AddTo(Pass& pass, std::unique_ptr<Job> job, int num_tokens) {
  const size_t num_before = pass.extensions.size();
  if (job->want.branches.empty()) {
    AddText(pass, *job, num_tokens);
  } else {
    AddBranches(pass, *job);
  }
  job->num_in_passes += num_tokens;
  pass.num_rows += num_tokens;
  Job* const member = job.get();
  pass.parts.push_back(
      {.job = member,
       .num_tokens = num_tokens,
       .num_extensions = static_cast<int>(pass.extensions.size() - num_before),
       .owner = std::move(job)});
}

}  // namespace

void ReadyWork::Add(std::unique_ptr<Job> job) {
  Queue& queue = job->is_prefill() ? prompts_
                 : job->is_ahead() ? ahead_
                                   : running_;
  if (!job->is_prefill() || !job->holds_up_stream()) {
    queue.push_back(std::move(job));
    return;
  }
  const auto place =
      std::find_if(queue.begin(), queue.end(),
                   [](const auto& other) { return !other->holds_up_stream(); });
  queue.insert(place, std::move(job));
}

size_t ReadyWork::NumAwaited(const Queue& queue) {
  return static_cast<size_t>(
      std::count_if(queue.begin(), queue.end(),
                    [](const auto& job) { return !job->is_ahead(); }));
}

bool ReadyWork::AnybodyStays() const {
  return std::any_of(running_.begin(), running_.end(),
                     [](const auto& job) { return job->want.stays; });
}

void ReadyWork::Fill(Pass& pass, const PassTime& pass_time) {
  AddRunning(pass);
  AddChunks(pass);
  AddAhead(pass, pass_time);
}

void ReadyWork::AddRunning(Pass& pass) {
  while (!running_.empty() &&
         (pass.num_rows == 0 ||
          pass.num_rows + running_.front()->num_left() <= options_.max_rows)) {
    std::unique_ptr<Job> job = PopFirst(running_);
    const int num_tokens = job->num_left();
    AddTo(pass, std::move(job), num_tokens);
  }
}

void ReadyWork::AddChunks(Pass& pass) {
  // Less is not worth a prompt's way through the model, but where it is all.
  const int least = std::min(kKvBlockLength, options_.prefill_chunk);
  const int num_running = pass.num_rows;
  const int num_left = options_.prefill_chunk - num_running;
  // What is left would not be a quarter of the rows in every pass.
  const bool is_full = num_left < least || 3 * num_left < num_running;
  // A quarter of the rows of two passes, however many the running have.
  const int share = std::max(options_.prefill_chunk, 2 * num_running / 3);
  const bool is_due = is_full && !last_had_chunk_;
  int num_rows = 0;  // of the chunks
  // Those that got a chunk go to the end of the queue: a short prompt does not
  // wait for the whole of a long one.
  while (!prompts_.empty()) {
    const Job& first = *prompts_.front();
    // Those who send streams that have begun keep to their share of the time
    // (ReprefillBudget).
    const bool has_share = is_due || first.holds_up_stream();
    const int budget = (has_share ? share : num_left) - num_rows;
    if (budget <= 0) break;
    // The last tokens, whose rows are wanted, stay together.
    const int num_head = first.num_left() - first.want.num_rows;
    int num_tokens = std::min(budget, num_head);
    if (first.num_left() <= budget) num_tokens = first.num_left();
    if (num_tokens < least && num_tokens < first.num_left()) {
      const bool may_wait = pass.num_chunks > 0 || last_had_chunk_;
      if (may_wait && pass.num_rows > 0) break;
      num_tokens = first.num_left();  // whose rows alone are over the budget
    }
    std::unique_ptr<Job> job = PopFirst(prompts_);
    job->had_chunks = true;
    AddTo(pass, std::move(job), num_tokens);
    ++pass.num_chunks;
    num_rows += num_tokens;
  }
  // What a full house leaves is nobody's turn.
  last_had_chunk_ = pass.num_chunks > 0 && (is_due || !is_full);
}

void ReadyWork::AddAhead(Pass& pass, const PassTime& pass_time) {
  int budget = options_.max_rows - pass.num_rows;
  if (pass.num_rows > 0) {
    budget = std::min(budget, pass_time.RowsOf(options_.max_ahead));
  }
  bool is_due = pass.num_rows == 0 || num_passed_over_ >= kMostPassedOver;
  num_passed_over_ = ahead_.empty() ? 0 : num_passed_over_ + 1;
  while (!ahead_.empty() && (is_due || ahead_.front()->num_left() <= budget)) {
    std::unique_ptr<Job> job = PopFirst(ahead_);
    const int num_tokens = job->num_left();
    AddTo(pass, std::move(job), num_tokens);
    budget -= num_tokens;
    is_due = false;
    num_passed_over_ = 0;
  }
}

}  // namespace outrider
