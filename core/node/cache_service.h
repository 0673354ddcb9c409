// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_CACHE_SERVICE_H_
#define OUTRIDER_CORE_NODE_CACHE_SERVICE_H_

#include <functional>

#include "core/node/model_thread.h"
#include "core/session/cache_delta.h"
#include "outrider/v1/cache.grpc.pb.h"

namespace outrider {

// CacheService of a node: passes the two advisory calls on to the engine, on
// the model's thread.
class CacheServiceImpl final : public v1::CacheService::CallbackService {
 public:
  struct Engine {
    std::function<bool(const RequestHeader&, int length)> truncate;
    std::function<bool(const RequestHeader&)> release;
  };

  CacheServiceImpl(Engine engine, ModelThread& model_thread);

  grpc::ServerUnaryReactor* Truncate(grpc::CallbackServerContext* context,
                                     const v1::TruncateRequest* request,
                                     v1::TruncateResponse* response) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseRequest* request,
                                    v1::ReleaseResponse* response) override;

 private:
  const Engine engine_;
  ModelThread& model_thread_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_CACHE_SERVICE_H_
