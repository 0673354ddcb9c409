// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_CACHE_SERVICE_H_
#define OUTRIDER_CORE_NODE_CACHE_SERVICE_H_

#include "core/engine/node_engine.h"
#include "core/node/node_counters.h"
#include "outrider/v1/cache.grpc.pb.h"

namespace outrider {

// CacheService of a node: the two advisory calls, which wait for no pass.
class CacheServiceImpl final : public v1::CacheService::CallbackService {
 public:
  CacheServiceImpl(NodeEngine& engine, NodeCounters& counters)
      : engine_(engine), counters_(counters) {}

  grpc::ServerUnaryReactor* Truncate(grpc::CallbackServerContext* context,
                                     const v1::TruncateRequest* request,
                                     v1::TruncateResponse* response) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseRequest* request,
                                    v1::ReleaseResponse* response) override;

 private:
  NodeEngine& engine_;
  NodeCounters& counters_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_CACHE_SERVICE_H_
