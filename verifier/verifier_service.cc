// SPDX-License-Identifier: Apache-2.0
#include "verifier/verifier_service.h"

#include "core/node/node_call.h"
#include "core/wire/message_limits.h"

namespace outrider {

grpc::ServerUnaryReactor* VerifierServiceImpl::Verify(
    grpc::CallbackServerContext* context, const v1::VerifyRequest* request,
    v1::VerifyResponse* response) {
  return HandleCall(node_, *engine_, context, *request, *response);
}

grpc::ServerUnaryReactor* VerifierServiceImpl::Describe(
    grpc::CallbackServerContext* context,
    const v1::VerifierServiceDescribeRequest* /*request*/,
    v1::VerifierServiceDescribeResponse* response) {
  return HandleDescribe(node_, context, *response);
}

std::unique_ptr<grpc::Service> MakeVerifierService(
    Node& node, const NodeDescription& description) {
  return std::make_unique<VerifierServiceImpl>(
      node, std::make_unique<VerifyEngine>(VerifyEngine::Options{
                .vocab_size = description.vocab_size,
                .context_length = description.context_length,
                .max_draft_tokens = description.max_draft_tokens}));
}

int MaxVerifyRequestBytes(const NodeDescription& description) {
  return LimitsOf(description).verify_request;
}

}  // namespace outrider
