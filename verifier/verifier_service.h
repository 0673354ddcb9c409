// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_
#define OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_

#include <memory>
#include <utility>

#include "core/node/node.h"
#include "core/telemetry/metric_registry.h"
#include "outrider/v1/verifier.grpc.pb.h"
#include "verifier/verify_engine.h"

namespace outrider {

// The gRPC shell of the verifier: core/node/node_call.h has what is in it.
class VerifierServiceImpl final : public v1::VerifierService::CallbackService {
 public:
  // The node must outlive it.
  VerifierServiceImpl(Node& node, std::unique_ptr<const VerifyEngine> engine)
      : node_(node), engine_(std::move(engine)) {}

  grpc::ServerUnaryReactor* Verify(grpc::CallbackServerContext* context,
                                   const v1::VerifyRequest* request,
                                   v1::VerifyResponse* response) override;
  grpc::ServerUnaryReactor* Describe(
      grpc::CallbackServerContext* context,
      const v1::VerifierServiceDescribeRequest* request,
      v1::VerifierServiceDescribeResponse* response) override;

 private:
  Node& node_;
  const std::unique_ptr<const VerifyEngine> engine_;
};

// The service has an engine that does what the node's description says.
std::unique_ptr<grpc::Service> MakeVerifierService(
    Node& node, const NodeDescription& description);

// The largest request that the model described can call for.
int MaxVerifyRequestBytes(const NodeDescription& description);

}  // namespace outrider

#endif  // OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_
