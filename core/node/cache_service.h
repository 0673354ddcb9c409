// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_CACHE_SERVICE_H_
#define OUTRIDER_CORE_NODE_CACHE_SERVICE_H_

#include <vector>

#include "core/engine/node_engine.h"
#include "core/node/node_counters.h"
#include "core/rpc/rpc_service.h"
#include "core/session/suspect_place.h"

namespace outrider {

// CacheService of a node: the two advisory calls, which wait for no pass.
class CacheServiceImpl final : public RpcService {
 public:
  CacheServiceImpl(NodeEngine& engine, NodeCounters& counters,
                   SuspectPlace& suspects)
      : engine_(engine), counters_(counters), suspects_(suspects) {}

  std::vector<RpcMethod> Methods() override;

 private:
  NodeEngine& engine_;
  NodeCounters& counters_;
  SuspectPlace& suspects_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_CACHE_SERVICE_H_
