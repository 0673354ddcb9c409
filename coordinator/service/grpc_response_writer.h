// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_WRITER_H_
#define OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_WRITER_H_

#include <grpcpp/support/server_callback.h>

#include <coroutine>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/task.h"
#include "outrider/v1/generation.pb.h"

namespace outrider {

// The server's side of one Generate stream: queues messages, writes them one
// after the other, and makes the writer wait while the client is slow. gRPC's
// own back-pressure comes only after megabytes. Thread-safe. Owned by gRPC: it
// deletes itself when the stream is over, after Finish.
class ResponseWriter final
    : public grpc::ServerWriteReactor<v1::GenerateResponse> {
 public:
  // The client's leaving is passed on to `cancellation`.
  explicit ResponseWriter(std::shared_ptr<Cancellation> cancellation)
      : cancellation_(std::move(cancellation)) {
    Order();
  }

  // Waits while too much is queued; false when the stream is broken.
  Task<bool> Write(v1::GenerateResponse response);
  // After what is queued. Called once; nothing of this object may be used
  // afterwards.
  void FinishAfterWrites(grpc::Status status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override {
    Order();
    cancellation_->Cancel();
  }
  void OnDone() override {
    Order();
    delete this;
  }

 private:
  // Ends when the queue is short enough, or the stream is broken.
  struct Drained {
    ResponseWriter& writer;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiting);
    void await_resume() const noexcept {}
  };

  // gRPC orders the birth of a reactor, its reactions and its end, but the
  // thread sanitizer cannot see into it: this it sees.
  void Order() { const MutexLock lock(mu_); }

  static constexpr size_t kMaxQueued = 256;

  const std::shared_ptr<Cancellation> cancellation_;

  Mutex mu_;
  std::deque<v1::GenerateResponse> queue_ ABSL_GUARDED_BY(mu_);
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  std::coroutine_handle<> waiting_ ABSL_GUARDED_BY(mu_);
  std::optional<grpc::Status> finish_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_WRITER_H_
