// SPDX-License-Identifier: Apache-2.0
#include "client/resuming_stream.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "core/base/retry_delay.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/keepalive.h"
#include "core/rpc/status_convert.h"

namespace outrider::client {
namespace {

using std::chrono::milliseconds;

// Coordinators that have all failed are tried again after it, and no sooner
// than the most patient of them asked for.
constexpr milliseconds kPause(500);

// Where another coordinator can go on, one that says nothing at all is not
// waited for much longer than a slow token. But where no core is free, one that
// is there may answer late: who left it then would have its text taken in anew,
// of which all would be later still. 400 ms were seen to be too few.
constexpr Keepalive kNotAlone = {.quiet = milliseconds(500),
                                 .answer = milliseconds(1000)};

// What another coordinator may do better. The deadline is the client's own, and
// a request that is wrong or too large is so everywhere.
bool MayGoElsewhere(const absl::Status& failure) {
  return absl::IsUnavailable(failure) || absl::IsResourceExhausted(failure) ||
         (absl::IsFailedPrecondition(failure) && !IsMessageTooLarge(failure)) ||
         absl::IsAborted(failure);
}

// One name may stand for them all, such as a Service's: the next connection
// comes to another one where the first is gone.
bool MayBeSeveral(const std::vector<std::string>& coordinators) {
  return coordinators.size() > 1 || !IsResolved(coordinators.front());
}

}  // namespace

ResumingStream::ResumingStream(GenerationRequest request, Options options)
    : request_(std::move(request)),
      options_(std::move(options)),
      deadline_(Clock::now() + options_.timeout),
      stream_(Begin(request_)) {}

absl::StatusOr<std::optional<GenerationUpdate>> ResumingStream::Next() {
  while (true) {
    auto update = stream_->Next();
    if (!update.ok()) {
      if (!GoOn(update.status())) return update;
      continue;
    }
    if (!update->has_value()) return update;
    const bool has_start = (*update)->start.has_value();
    const bool goes_on = has_start && std::exchange(has_started_, true);
    const bool has_tokens = !(*update)->tokens.empty();  // new ones
    if (has_tokens) num_tries_ = 1;                      // this very one
    if (has_tokens || (has_start && !goes_on)) last_heard_ = Clock::now();
    if (goes_on) continue;
    return update;
  }
}

std::unique_ptr<GenerationStream> ResumingStream::Begin(
    GenerationRequest request) {
  const auto& coordinators = options_.coordinators;
  GenerationClient client(coordinators[num_begun_++ % coordinators.size()],
                          options_.tls,
                          MayBeSeveral(coordinators) ? kNotAlone : Keepalive());
  ++num_tries_;
  return client.Prepare(
      std::move(request),
      std::max(milliseconds(1),
               std::chrono::ceil<milliseconds>(deadline_ - Clock::now())));
}

bool ResumingStream::GoOn(const absl::Status& failure) {
  const size_t num_coordinators = options_.coordinators.size();
  const Clock::time_point now = Clock::now();
  if (!MayBeSeveral(options_.coordinators) || !MayGoElsewhere(failure) ||
      !MayTryAgain(now)) {
    return false;
  }
  try_again_ = std::max(
      try_again_, now + RetryDelayOf(failure).value_or(milliseconds::zero()));
  MutexLock lock(mu_);
  if (num_tries_ % num_coordinators == 0) {
    const Clock::time_point end =
        std::min(std::max(try_again_, now + kPause), deadline_);
    while (!is_cancelled_ && cancelled_.WaitUntil(mu_, end)) {
    }
  }
  if (is_cancelled_ || Clock::now() >= deadline_) return false;
  stream_ = Begin(has_started_ ? stream_->ResumeRequest() : request_);
  return true;
}

bool ResumingStream::MayTryAgain(Clock::time_point now) const {
  if (num_tries_ < kTriesOfEach * options_.coordinators.size()) return true;
  return has_started_ && now < last_heard_ + options_.longest_search;
}

void ResumingStream::Cancel() {
  MutexLock lock(mu_);
  is_cancelled_ = true;
  cancelled_.NotifyAll();
  stream_->Cancel();
}

}  // namespace outrider::client
