// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_
#define OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_

#include "core/node/model_thread.h"
#include "core/wire/node_description.h"
#include "outrider/v1/verifier.grpc.pb.h"
#include "verifier/verify_engine.h"

namespace outrider {

// The gRPC shell of the verifier: validates and converts, runs the engine on
// the model's thread, converts back.
class VerifierServiceImpl final : public v1::VerifierService::CallbackService {
 public:
  // The largest request that the model described can call for.
  static int MaxRequestBytes(const NodeDescription& description);

  VerifierServiceImpl(VerifyEngine& engine, ModelThread& model_thread,
                      NodeDescription description);

  grpc::ServerUnaryReactor* Verify(grpc::CallbackServerContext* context,
                                   const v1::VerifyRequest* request,
                                   v1::VerifyResponse* response) override;
  grpc::ServerUnaryReactor* Describe(
      grpc::CallbackServerContext* context,
      const v1::VerifierServiceDescribeRequest* request,
      v1::VerifierServiceDescribeResponse* response) override;

 private:
  VerifyEngine& engine_;
  ModelThread& model_thread_;
  const v1::NodeDescription description_;
};

}  // namespace outrider

#endif  // OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_
