// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_cache_stub.h"

#include <chrono>

#include "core/base/cancellation.h"
#include "core/rpc/unary_call.h"

namespace outrider {

GrpcCacheStub::GrpcCacheStub(const std::shared_ptr<grpc::Channel>& channel,
                             CallQueue& queue)
    : queue_(queue), stub_(v1::CacheService::NewStub(channel)) {}

Task<void> GrpcCacheStub::Release(RequestHeader header) {
  if (header.incarnation.is_none()) co_return;
  v1::ReleaseRequest request;
  request.set_session_id(header.session.ToBytes());
  request.set_incarnation(header.incarnation.ToBytes());
  request.set_step(header.step);
  Cancellation none;  // the session's own may have been used up
  [[maybe_unused]] const auto ignored = co_await CallUnary<v1::ReleaseResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub_->PrepareAsyncRelease(context, request, queue);
      },
      {.queue = queue_,
       .deadline = std::chrono::seconds(1),
       .cancellation = none});
}

}  // namespace outrider
