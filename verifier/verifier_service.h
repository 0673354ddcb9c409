// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_
#define OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/node/node.h"
#include "core/rpc/rpc_service.h"
#include "outrider/v1/verifier.pb.h"
#include "verifier/verify_engine.h"

namespace outrider {

// The gRPC shell of the verifier: core/node/node_call.h has what is in it.
class VerifierServiceImpl final : public RpcService {
 public:
  // The node must outlive it.
  VerifierServiceImpl(Node& node, std::unique_ptr<const VerifyEngine> engine)
      : node_(node), engine_(std::move(engine)) {}

  std::vector<RpcMethod> Methods() override;

 private:
  void Isolate(ServerCall& call, const v1::IsolateRequest& request);
  // Replies once the session has the place, or has waited for a while.
  Task<void> AwaitPlace(ServerCall& call, SessionId session);

  Node& node_;
  const std::unique_ptr<const VerifyEngine> engine_;
};

// The service has an engine that does what the node's description says.
std::unique_ptr<RpcService> MakeVerifierService(
    Node& node, const NodeDescription& description);

// The largest request that the model described can call for.
int MaxVerifyRequestBytes(const NodeDescription& description);

}  // namespace outrider

#endif  // OUTRIDER_VERIFIER_VERIFIER_SERVICE_H_
