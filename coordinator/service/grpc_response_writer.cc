// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/grpc_response_writer.h"

#include <algorithm>
#include <utility>

#include "core/rpc/sleep.h"

namespace outrider {

ResponseWriter& ResponseWriter::For(
    ServerCall& call, const Options& options,
    std::shared_ptr<Cancellation> cancellation) {
  std::unique_ptr<ResponseWriter> writer(
      new ResponseWriter(call, options, std::move(cancellation)));
  ResponseWriter& result = *writer;
  call.Accompany(std::move(writer));
  return result;
}

ResponseWriter::ResponseWriter(ServerCall& call, const Options& options,
                               std::shared_ptr<Cancellation> cancellation)
    : call_(call), options_(options), cancellation_(std::move(cancellation)) {
  registration_ = cancellation_->OnCancel([this] {
    MutexLock lock(mu_);
    is_cancelled_ = true;
    WakeLocked();
  });
}

EncodedResponse ResponseWriter::Encode(const v1::GenerateResponse& response) {
  return {.bytes = response.SerializeAsString(),
          .num_tokens = response.tokens_size()};
}

Task<absl::Status> ResponseWriter::Write(EncodedResponse response) {
  const std::string* first = nullptr;
  {
    MutexLock lock(mu_);
    if (queue_.empty()) last_read_ = Clock::now();
    has_written_ = true;
    queue_.Push(std::move(response));
    if (queue_.size() == 1 && !is_broken_) first = &queue_.front();
  }
  if (first != nullptr) {
    // The next round's call goes first: what the client gets has taken a round
    // already, and writing it takes as long as the rest of what lies between
    // two passes of the verifier. Until it is written the call goes on.
    CallQueue::Afterwards([this, first] {
      // OnWritten comes after this by gRPC's queue, which the thread sanitizer
      // cannot see into: it sees the mutex.
      MutexLock lock(mu_);
      call_.WriteBytes(*first);
    });
  }
  co_await Wait(Until::kRoom);
  DropIfStalled();
  MutexLock lock(mu_);
  if (is_dropped_) {
    co_return absl::CancelledError("the client has stopped reading");
  }
  if (is_broken_ || is_cancelled_) {
    co_return absl::CancelledError("the client is gone");
  }
  co_return absl::OkStatus();
}

Task<void> ResponseWriter::FinishAfterWrites(grpc::Status status) {
  // Never with a write under way. What is dropped fails at once.
  do {
    co_await Wait(Until::kAllWritten);
    DropIfStalled();
  } while (!HasWrittenAll());
  call_.Finish(status);
}

bool ResponseWriter::HasWrittenAll() const {
  MutexLock lock(mu_);
  return IsOver(Until::kAllWritten);
}

Task<void> ResponseWriter::Wait(Until until) {
  while (true) {
    Cancellation wake;
    Clock::duration left = {};
    {
      MutexLock lock(mu_);
      left = DeadlineLocked() - Clock::now();
      if (IsOver(until) || left <= Clock::duration::zero()) co_return;
      awaited_ = until;
      wake_ = &wake;
    }
    co_await Sleep(options_.queue,
                   std::chrono::ceil<std::chrono::milliseconds>(left), wake);
    MutexLock lock(mu_);
    wake_ = nullptr;
  }
}

bool ResponseWriter::IsOver(Until until) const {
  if (is_broken_) return true;
  if (until == Until::kAllWritten) return queue_.empty();
  return is_cancelled_ || queue_.has_room();
}

void ResponseWriter::WakeLocked() {
  if (wake_ != nullptr && IsOver(awaited_)) wake_->Cancel();
}

ResponseWriter::Clock::time_point ResponseWriter::DeadlineLocked() const {
  // One that is dropped only waits for gRPC to say so.
  return is_dropped_ ? Clock::now() + std::chrono::hours(1)
                     : last_read_ + options_.patience;
}

void ResponseWriter::DropIfStalled() {
  {
    MutexLock lock(mu_);
    const bool is_stalled = !queue_.empty() && Clock::now() >= DeadlineLocked();
    if (is_broken_ || is_dropped_ || !is_stalled) return;
    is_dropped_ = true;
  }
  call_.context().TryCancel();
}

void ResponseWriter::OnWritten(bool ok) {
  const std::string* next = nullptr;
  {
    MutexLock lock(mu_);
    last_read_ = Clock::now();
    queue_.Pop();
    if (!ok) {
      is_broken_ = true;
    } else if (!queue_.empty()) {
      next = &queue_.front();
    }
    WakeLocked();
  }
  if (!ok) cancellation_->Cancel();
  if (next != nullptr) call_.WriteBytes(*next);
}

}  // namespace outrider
