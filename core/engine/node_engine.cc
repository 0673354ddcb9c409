// SPDX-License-Identifier: Apache-2.0
#include "core/engine/node_engine.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "core/base/log.h"
#include "core/base/thrown_status.h"

namespace outrider {
namespace {

PassResults AllFailed(const Pass& pass, const absl::Status& failure) {
  OUTRIDER_LOG(kError) << failure;
  return PassResults(pass.extensions.size(), failure);
}

BatchScheduler::Options WithWaysOf(const CausalLm& model,
                                   BatchScheduler::Options options) {
  options.num_in_flight = model.num_in_flight();
  options.sessions.blocks_are_text = model.info().blocks_are_text;
  return options;
}

}  // namespace

NodeEngine::NodeEngine(std::unique_ptr<CausalLm> model, Options options)
    : model_(std::move(model)),
      passes_go_first_(model_->device_counters() != nullptr &&
                       options.num_threads > 1),
      on_lost_(std::move(options.on_lost)),
      expiry_period_(options.expiry_period),
      scheduler_(WithWaysOf(*model_, options.scheduling)),
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

void NodeEngine::Submit(std::unique_ptr<Work> work) noexcept {
  MutexLock lock(mu_);
  const auto before = scheduler_.ask_again_at();
  scheduler_.Submit(std::move(work), Clock::now());
  BeginOne();
  while (!IsPassing() && scheduler_.IsOneDecode() && RunPass()) TakeOne();
  // A reply, or a refusal; of others too, but never more than one.
  FinishOne();
  // While a pass is held, or runs, one thread waits until the next one may
  // begin: this one has to wake it where it is known only now when that is.
  const auto after = scheduler_.ask_again_at();
  const bool is_held = scheduler_.IsHolding() && after == before;
  const bool may_begin = IsPassing() ? after.has_value() && after != before
                                     : !is_held && scheduler_.num_jobs() > 0;
  if (scheduler_.HasJobToHandOut() || may_begin) wake_.NotifyOne();
}

bool NodeEngine::Truncate(const RequestHeader& header, int length) noexcept {
  MutexLock lock(mu_);
  return scheduler_.Truncate(header, length);
}

bool NodeEngine::Release(const RequestHeader& header) noexcept {
  MutexLock lock(mu_);
  return scheduler_.Release(header);
}

std::optional<std::chrono::steady_clock::time_point> NodeEngine::pass_start()
    const {
  MutexLock lock(mu_);
  return scheduler_.pass_start();
}

void NodeEngine::Run() {
  MutexLock lock(mu_);
  while (true) {
    // Replies once more after the pass, as some work ends where that is looked
    // for.
    if ((!passes_go_first_ && FinishOne()) || RunPass() || BeginOne() ||
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
  const bool may_launch = MayLaunch();
  if (may_launch) {
    scheduler_.Sweep(Clock::now());
    if (BeginOne()) return true;  // to be in the pass
  }
  const bool has_launched = may_launch && LaunchPass();
  return FinishPass() || has_launched;
}

bool NodeEngine::MayLaunch() const {
  if (is_launching_) return false;
  // Each look goes through all that is ready: while a pass is held for rows,
  // one after each of them would be n for n sessions.
  if (!IsPassing()) return !scheduler_.IsHeld(Clock::now());
  const auto next = scheduler_.ask_again_at();
  return next.has_value() && Clock::now() >= *next;
}

bool NodeEngine::LaunchPass() {
  const Clock::time_point start = Clock::now();
  const Pass* const pass = scheduler_.NextPass(start);
  if (pass == nullptr) return false;
  is_launching_ = true;
  // Replies do not wait for this thread's pass.
  if (scheduler_.HasJobToHandOut()) wake_.NotifyOne();
  mu_.Unlock();
  std::unique_ptr<PendingPass> pending = Launch(*pass);
  mu_.Lock();
  is_launching_ = false;
  launched_.push_back({pass, std::move(pending)});
  scheduler_.NoteLaunch(Clock::now() - start);
  // While this thread awaits it, another one looks for the next pass.
  if (scheduler_.ask_again_at().has_value()) wake_.NotifyOne();
  return true;
}

// The first one alone, by one thread at a time: passes end in the order of
// their launches.
bool NodeEngine::FinishPass() {
  if (is_finishing_ || launched_.empty()) return false;
  is_finishing_ = true;
  const Launched launched = std::move(launched_.front());
  launched_.pop_front();
  mu_.Unlock();
  PassResults results = Finish(launched);
  mu_.Lock();
  is_finishing_ = false;
  scheduler_.EndPass(std::move(results), Clock::now());
  // A single job goes on on this thread, but for what runs beside its pass, or
  // was launched there, which this thread may leave to another one.
  if (scheduler_.num_jobs() > 1 || !launched_.empty() ||
      scheduler_.ask_again_at().has_value()) {
    wake_.NotifyAll();
  }
  if (scheduler_.is_lost()) TellLost();
  return true;
}

void NodeEngine::TellLost() {
  if (std::exchange(told_lost_, true) || !on_lost_) return;
  mu_.Unlock();
  on_lost_();
  mu_.Lock();
}

std::unique_ptr<PendingPass> NodeEngine::Launch(const Pass& pass) {
  try {
    return model_->Launch(pass.extensions);
  } catch (const std::exception& e) {
    return std::make_unique<PassThatRan>(
        AllFailed(pass, ThrownStatus("a pass failed", e)));
  }
}

PassResults NodeEngine::Finish(const Launched& launched) {
  const Pass& pass = *launched.pass;
  try {
    PassResults results = launched.pending->Finish();
    for (const auto& result : results) {
      if (!absl::IsUnavailable(result.status())) continue;
      OUTRIDER_LOG(kError) << "the device is lost, and this node serves no "
                              "more: "
                           << result.status().message();
      break;
    }
    if (results.size() == pass.extensions.size()) return results;
    return AllFailed(pass, absl::InternalError("a pass lost some of its rows"));
  } catch (const std::exception& e) {
    return AllFailed(pass, ThrownStatus("a pass failed", e));
  }
}

bool NodeEngine::BeginOne() {
  std::unique_ptr<Job> job = scheduler_.NextToBegin();
  if (job == nullptr) return false;
  mu_.Unlock();
  job->Begin();
  mu_.Lock();
  scheduler_.Begun(std::move(job), Clock::now());
  return true;
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
    next_expiry_ = now + expiry_period_;
  }
  // While a pass is being launched no other one is, and its thread wakes this
  // one then.
  const auto next = is_launching_ ? std::nullopt : scheduler_.ask_again_at();
  wake_.WaitUntil(mu_, std::min(next_expiry_, next.value_or(next_expiry_)));
}

}  // namespace outrider
