// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_cache_stub.h"

#include <chrono>

#include "absl/status/statusor.h"
#include "coordinator/nodes/jittered_retry_delay.h"
#include "core/base/retry_delay.h"
#include "core/rpc/sleep.h"
#include "core/rpc/unary_call.h"

namespace outrider {

GrpcCacheStub::GrpcCacheStub(const std::shared_ptr<grpc::Channel>& channel,
                             CallQueue& queue)
    : queue_(queue), stub_(v1::CacheService::NewStub(channel)) {}

Task<void> GrpcCacheStub::Release(RequestHeader header,
                                  Cancellation& cancellation) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(30);
  v1::ReleaseRequest request;
  request.set_session_id(header.session.ToBytes());
  request.set_incarnation(header.incarnation.ToBytes());
  request.set_step(header.step);
  request.set_text_is_over(header.is_over);
  for (uint64_t attempt = 0;; ++attempt) {
    const absl::StatusOr<v1::ReleaseResponse> response =
        co_await CallUnary<v1::ReleaseResponse>(
            [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
              return stub_->PrepareAsyncRelease(context, request, queue);
            },
            {.queue = queue_,
             // It waits for the passes that are queued.
             .deadline = std::chrono::seconds(10),
             .cancellation = cancellation});
    if (!IsRefusal(response.status()) || Clock::now() > end) co_return;
    co_await Sleep(
        queue_, JitteredRetryDelay(response.status(), header.session, attempt),
        cancellation);
    if (cancellation.cancelled()) co_return;
  }
}

}  // namespace outrider
