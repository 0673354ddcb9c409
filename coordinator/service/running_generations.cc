// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/running_generations.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/jittered_retry_delay.h"

namespace outrider {
namespace {

constexpr std::chrono::seconds kNoPlaceRetryDelay(1);

absl::Status DrainsError() {
  return absl::UnavailableError(
      "this coordinator is shutting down: use another one");
}

}  // namespace

absl::Status RunningGenerations::Enter(
    const std::shared_ptr<Cancellation>& generation, Kind kind) {
  const int64_t most = int64_t{most_} * (kind == Kind::kResumed ? 2 : 1);
  MutexLock lock(mu_);
  if (is_draining_) return DrainsError();
  if (static_cast<int64_t>(running_.size()) >= most) {
    return WithJitteredRetryDelay(
        absl::ResourceExhaustedError(absl::StrCat(
            "this coordinator runs ", running_.size(),
            " sessions, and its limit is ", most, "; try again later")),
        kNoPlaceRetryDelay);
  }
  running_.insert(generation);
  return absl::OkStatus();
}

void RunningGenerations::Leave(
    const std::shared_ptr<Cancellation>& generation) {
  MutexLock lock(mu_);
  running_.erase(generation);
  changed_.NotifyAll();
}

bool RunningGenerations::Drain(std::chrono::milliseconds longest,
                               std::chrono::milliseconds longest_cancelled) {
  MutexLock lock(mu_);
  is_draining_ = true;
  AwaitAllUntil(Clock::now() + longest);
  for (const auto& generation : running_) generation->Cancel();
  AwaitAllUntil(Clock::now() + longest_cancelled);
  return running_.empty();
}

absl::Status RunningGenerations::CheckOpen() const {
  MutexLock lock(mu_);
  return is_draining_ ? DrainsError() : absl::OkStatus();
}

void RunningGenerations::AwaitAllUntil(Clock::time_point end) {
  while (!running_.empty() && changed_.WaitUntil(mu_, end)) {
  }
}

}  // namespace outrider
