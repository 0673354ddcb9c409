// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_HEALTH_SERVICE_H_
#define OUTRIDER_CORE_RPC_HEALTH_SERVICE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/rpc/rpc_service.h"

namespace outrider {

// grpc.health.v1.Health. gRPC's own is on the callback API, whose threads would
// poll beside the queue's.
class HealthService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override;

  // A name that was never set is unknown.
  void Set(const std::string& name, bool serving);
  // Ends the calls that watch, as the server does no longer serve.
  void EndWatches();

 private:
  class Watch;

  Mutex mu_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mu_);
  std::set<Watch*> watches_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_HEALTH_SERVICE_H_
