// SPDX-License-Identifier: Apache-2.0
#include "core/engine/node_engine.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace outrider {

NodeEngine::NodeEngine(std::unique_ptr<CausalLm> model, Options options)
    : model_(std::move(model)),
      passes_go_first_(model_->device_counters() != nullptr &&
                       options.num_threads > 1),
      on_lost_(std::move(options.on_lost)),
      scheduler_(options.scheduling),
      scheduler_metrics_(scheduler_.metrics()) {
  for (int i = 0; i < options.num_threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

NodeEngine::~NodeEngine() {
  MutexLock lock(mu_);
  is_ending_ = true;
  wake_.NotifyAll();
}

void NodeEngine::Submit(std::unique_ptr<Work> work) {
  MutexLock lock(mu_);
  const auto hold_end = scheduler_.hold_end();
  scheduler_.Submit(std::move(work), Clock::now());
  while (!is_passing_ && scheduler_.IsOneDecode() && RunPass()) TakeOne();
  // A reply, or a refusal; of others too, but never more than one.
  FinishOne();
  // While a pass is held, one thread waits for the hold's end: this one has to
  // wake it where the hold began just now.
  const bool is_held =
      scheduler_.IsHolding() && scheduler_.hold_end() == hold_end;
  if (scheduler_.HasRowsOrReplies() ||
      (!is_passing_ && !is_held && scheduler_.num_jobs() > 0)) {
    wake_.NotifyOne();
  }
}

bool NodeEngine::Truncate(const RequestHeader& header, int length) {
  MutexLock lock(mu_);
  return scheduler_.Truncate(header, length);
}

bool NodeEngine::Release(const RequestHeader& header) {
  MutexLock lock(mu_);
  return scheduler_.Release(header);
}

std::optional<std::chrono::steady_clock::time_point> NodeEngine::pass_start()
    const {
  MutexLock lock(mu_);
  if (!is_passing_) return std::nullopt;
  return pass_start_;
}

void NodeEngine::Run() {
  MutexLock lock(mu_);
  while (true) {
    // Replies once more after the pass, as some work ends where that is looked
    // for.
    if ((!passes_go_first_ && FinishOne()) || (!is_passing_ && RunPass()) ||
        FinishOne() || TakeOne()) {
      continue;
    } else if (is_ending_ && scheduler_.num_jobs() == 0) {
      wake_.NotifyAll();
      return;
    } else {
      Wait();
    }
  }
}

bool NodeEngine::RunPass() {
  std::optional<Pass> pass = scheduler_.NextPass(Clock::now());
  if (!pass.has_value()) return false;
  is_passing_ = true;
  pass_start_ = pass->start;
  // Replies do not wait for this thread's pass.
  if (scheduler_.HasRowsOrReplies()) wake_.NotifyOne();
  mu_.Unlock();
  PassResults results = Extend(*pass);
  mu_.Lock();
  is_passing_ = false;
  scheduler_.EndPass(*std::move(pass), std::move(results), Clock::now());
  // A single job goes on on this thread.
  if (scheduler_.num_jobs() > 1) wake_.NotifyAll();
  if (scheduler_.is_lost() && !told_lost_) {
    told_lost_ = true;
    mu_.Unlock();
    if (on_lost_) on_lost_();
    mu_.Lock();
  }
  return true;
}

PassResults NodeEngine::Extend(const Pass& pass) {
  absl::Status failure;
  try {
    PassResults results = model_->Extend(pass.extensions);
    for (const auto& result : results) {
      if (!absl::IsUnavailable(result.status())) continue;
      OUTRIDER_LOG(kError) << "the device is lost, and this node serves no "
                              "more: "
                           << result.status().message();
      break;
    }
    if (results.size() == pass.extensions.size()) return results;
    failure = absl::InternalError("a pass lost some of its rows");
  } catch (const std::exception& e) {
    failure = absl::InternalError(absl::StrCat("a pass failed: ", e.what()));
  }
  OUTRIDER_LOG(kError) << failure;
  PassResults results;
  for (size_t i = 0; i < pass.extensions.size(); ++i) {
    results.emplace_back(failure);
  }
  return results;
}

bool NodeEngine::TakeOne() {
  std::unique_ptr<Job> job = scheduler_.NextToTake();
  if (job == nullptr) return false;
  mu_.Unlock();
  job->Take();
  mu_.Lock();
  scheduler_.Taken(std::move(job), Clock::now());
  return true;
}

bool NodeEngine::FinishOne() {
  const std::unique_ptr<Job> job = scheduler_.NextEnded();
  if (job == nullptr) return false;
  mu_.Unlock();
  job->Finish();
  mu_.Lock();
  return true;
}

void NodeEngine::Wait() {
  const Clock::time_point now = Clock::now();
  if (now >= next_expiry_) {
    scheduler_.Expire(now);
    next_expiry_ = now + std::chrono::seconds(1);
  }
  // While a pass runs, its end wakes this thread.
  const auto hold_end = is_passing_ ? std::nullopt : scheduler_.hold_end();
  wake_.WaitUntil(mu_, std::min(next_expiry_, hold_end.value_or(next_expiry_)));
}

}  // namespace outrider
