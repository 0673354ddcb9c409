// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_WRITER_H_
#define OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_WRITER_H_

#include <chrono>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "coordinator/service/grpc_response_queue.h"
#include "coordinator/service/open_streams.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/server_call.h"
#include "outrider/v1/generation.pb.h"

namespace outrider {

// The server's side of one Generate stream: queues messages, writes them one
// after the other, makes the generation wait while too much is queued, and
// drops a client that does not read for a while. gRPC's own
// back-pressure comes only after megabytes. Thread-safe. Goes with its call,
// which is over after FinishAfterWrites.
class ResponseWriter final : public ServerCall::Companion {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    CallQueue& queue;  // where waiting coroutines go on
    std::chrono::milliseconds patience = std::chrono::seconds(60);
  };

  // Accompanies the call. The client's leaving is passed on to `cancellation`,
  // which ends a Write that waits.
  static ResponseWriter& For(ServerCall& call, const Options& options,
                             std::shared_ptr<Cancellation> cancellation);
  ~ResponseWriter() override { cancellation_->Forget(registration_); }

  // It is one of these until its client has had all of it. Called first.
  void CountAmong(OpenStreams& streams) { place_.emplace(streams); }
  Clock::time_point arrived_at() const { return call_.arrived_at(); }
  // Waits while too much is queued. CANCELLED: the stream is broken, was
  // cancelled, or the client has read nothing for as long as the patience.
  Task<absl::Status> Write(EncodedResponse response);
  static EncodedResponse Encode(const v1::GenerateResponse& response);
  // Once the client has read what is queued, or is dropped. Called once, and
  // last: it is over when the status is on its way.
  Task<void> FinishAfterWrites(grpc::Status status);

  // Whether the client was told anything yet.
  bool has_written() const {
    MutexLock lock(mu_);
    return has_written_;
  }

  void OnWritten(bool ok) override;
  void OnCancelled() override { cancellation_->Cancel(); }

 private:
  ResponseWriter(ServerCall& call, const Options& options,
                 std::shared_ptr<Cancellation> cancellation);

  // What a wait is for.
  enum class Until { kRoom, kAllWritten };

  // Ends then, or when the stream is broken or has stalled.
  Task<void> Wait(Until until);
  bool HasWrittenAll() const;
  bool IsOver(Until until) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the wait, if there is one and it is over.
  void WakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Clock::time_point DeadlineLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Breaks the stream off, unless the client has read something lately.
  void DropIfStalled();

  ServerCall& call_;
  const Options options_;
  const std::shared_ptr<Cancellation> cancellation_;
  uint64_t registration_ = 0;
  std::optional<OpenStreams::Place> place_;

  mutable Mutex mu_;
  ResponseQueue queue_ ABSL_GUARDED_BY(mu_);
  Clock::time_point last_read_ ABSL_GUARDED_BY(mu_) = Clock::now();
  bool has_written_ ABSL_GUARDED_BY(mu_) = false;
  bool is_broken_ ABSL_GUARDED_BY(mu_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool is_dropped_ ABSL_GUARDED_BY(mu_) = false;
  Until awaited_ ABSL_GUARDED_BY(mu_) = Until::kRoom;
  Cancellation* wake_ ABSL_GUARDED_BY(mu_) = nullptr;  // of the wait, if any
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_WRITER_H_
