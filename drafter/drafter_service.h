// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_
#define OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_

#include "core/node/model_thread.h"
#include "core/wire/node_description.h"
#include "drafter/draft_engine.h"
#include "outrider/v1/drafter.grpc.pb.h"

namespace outrider {

// The gRPC shell of the drafter: validates and converts, runs the engine on the
// model's thread, converts back.
class DrafterServiceImpl final : public v1::DrafterService::CallbackService {
 public:
  // The largest request that the model described can call for.
  static int MaxRequestBytes(const NodeDescription& description);

  DrafterServiceImpl(DraftEngine& engine, ModelThread& model_thread,
                     NodeDescription description);

  grpc::ServerUnaryReactor* Draft(grpc::CallbackServerContext* context,
                                  const v1::DraftRequest* request,
                                  v1::DraftResponse* response) override;
  grpc::ServerUnaryReactor* Describe(
      grpc::CallbackServerContext* context,
      const v1::DrafterServiceDescribeRequest* request,
      v1::DrafterServiceDescribeResponse* response) override;

 private:
  DraftEngine& engine_;
  ModelThread& model_thread_;
  const v1::NodeDescription description_;
};

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_DRAFTER_SERVICE_H_
