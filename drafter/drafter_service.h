// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_
#define OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "core/node/node.h"
#include "core/rpc/rpc_service.h"
#include "drafter/draft_engine.h"

namespace outrider {

// The gRPC shell of the drafter: core/node/node_call.h has what is in it.
class DrafterServiceImpl final : public RpcService {
 public:
  // The node must outlive it.
  DrafterServiceImpl(Node& node, std::unique_ptr<const DraftEngine> engine)
      : node_(node), engine_(std::move(engine)) {}

  std::vector<RpcMethod> Methods() override;

 private:
  Node& node_;
  const std::unique_ptr<const DraftEngine> engine_;
};

// The service has an engine that does what the node's description says.
std::unique_ptr<RpcService> MakeDrafterService(
    Node& node, const NodeDescription& description);

// The largest request that the model described can call for.
int MaxDraftRequestBytes(const NodeDescription& description);

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_
