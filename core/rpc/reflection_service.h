// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_REFLECTION_SERVICE_H_
#define OUTRIDER_CORE_RPC_REFLECTION_SERVICE_H_

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "core/rpc/rpc_service.h"

namespace outrider {

// grpc.reflection.v1alpha.ServerReflection: what is served, out of the .proto
// files that are linked. gRPC's own has threads that would poll beside the
// queue's.
class ReflectionService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override;

  // The service that the method is of is listed. Must come before the server
  // starts.
  void Add(const RpcMethod& method);

 private:
  class Dialogue;

  std::set<std::string> services_;
  std::atomic<int> num_dialogues_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_REFLECTION_SERVICE_H_
