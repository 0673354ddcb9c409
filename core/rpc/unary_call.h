// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_UNARY_CALL_H_
#define OUTRIDER_CORE_RPC_UNARY_CALL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <chrono>
#include <coroutine>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/deadline.h"
#include "core/rpc/status_convert.h"

namespace outrider {

struct CallOptions {
  CallQueue& queue;
  std::chrono::milliseconds deadline;
  Cancellation& cancellation;
};

// One unary call as an awaitable: co_await UnaryCall<Response>(prepare,
// options) yields a StatusOr<Response>. `prepare` makes the reader:
//   [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
//     return stub->PrepareAsyncDraft(context, request, queue);
//   }
// The awaiting coroutine goes on on a thread of the queue.
template <typename Response, typename Prepare>
class UnaryCall final : public Completion {
 public:
  UnaryCall(Prepare prepare, CallOptions options)
      : prepare_(std::move(prepare)), options_(options) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) {
    awaiting_ = awaiting;
    context_.set_deadline(DeadlineAfter(options_.deadline));
    reader_ = prepare_(&context_, options_.queue.queue());
    reader_->StartCall();
    registration_ =
        options_.cancellation.OnCancel([this] { context_.TryCancel(); });
    auto* const reader = reader_.get();
    Arm();
    // The call may be over, and this object gone, before this returns.
    reader->Finish(&response_, &status_, this);
  }
  absl::StatusOr<Response> await_resume() {
    options_.cancellation.Forget(registration_);
    // A server that shuts down cancels the calls that reach it too late.
    if (status_.error_code() == grpc::StatusCode::CANCELLED &&
        !options_.cancellation.cancelled()) {
      return absl::UnavailableError("the server is shutting down");
    }
    if (!status_.ok()) return FromGrpcStatus(status_);
    return std::move(response_);
  }

 private:
  void OnComplete(bool /*ok*/) override { awaiting_.resume(); }

  Prepare prepare_;
  const CallOptions options_;
  std::coroutine_handle<> awaiting_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  uint64_t registration_ = 0;
  Response response_;
  grpc::Status status_;
};

template <typename Response, typename Prepare>
UnaryCall<Response, Prepare> CallUnary(Prepare prepare, CallOptions options) {
  return {std::move(prepare), options};
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_UNARY_CALL_H_
