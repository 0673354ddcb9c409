// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_
#define OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_

#include <memory>
#include <utility>

#include "core/node/node.h"
#include "drafter/draft_engine.h"
#include "outrider/v1/drafter.grpc.pb.h"

namespace outrider {

// The gRPC shell of the drafter: core/node/node_call.h has what is in it.
class DrafterServiceImpl final : public v1::DrafterService::CallbackService {
 public:
  // The node must outlive it.
  DrafterServiceImpl(Node& node, std::unique_ptr<const DraftEngine> engine)
      : node_(node), engine_(std::move(engine)) {}

  grpc::ServerUnaryReactor* Draft(grpc::CallbackServerContext* context,
                                  const v1::DraftRequest* request,
                                  v1::DraftResponse* response) override;
  grpc::ServerUnaryReactor* Describe(
      grpc::CallbackServerContext* context,
      const v1::DrafterServiceDescribeRequest* request,
      v1::DrafterServiceDescribeResponse* response) override;

 private:
  Node& node_;
  const std::unique_ptr<const DraftEngine> engine_;
};

// The service has an engine that does what the node's description says.
std::unique_ptr<grpc::Service> MakeDrafterService(
    Node& node, const NodeDescription& description);

// The largest request that the model described can call for.
int MaxDraftRequestBytes(const NodeDescription& description);

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_
