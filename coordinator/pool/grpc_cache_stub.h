// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_CACHE_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_CACHE_STUB_H_

#include <grpcpp/channel.h>

#include <memory>

#include "coordinator/nodes/shared_stubs.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/session/cache_delta.h"
#include "outrider/v1/cache.grpc.pb.h"

namespace outrider {

// CacheStub over gRPC. Thread-safe.
class GrpcCacheStub final : public CacheStub {
 public:
  GrpcCacheStub(const std::shared_ptr<grpc::Channel>& channel,
                CallQueue& queue);

  // A node that is too busy now is told again, for about as long as its lease
  // would last.
  Task<void> Release(RequestHeader header, Cancellation& cancellation) override;

 private:
  CallQueue& queue_;
  const std::unique_ptr<v1::CacheService::Stub> stub_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_CACHE_STUB_H_
