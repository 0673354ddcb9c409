// SPDX-License-Identifier: Apache-2.0
#include "drafter/drafter_service.h"

#include <utility>

#include "core/node/node_call.h"
#include "core/wire/message_limits.h"
#include "drafter/load_drafter.h"

namespace outrider {

grpc::ServerUnaryReactor* DrafterServiceImpl::Draft(
    grpc::CallbackServerContext* context, const v1::DraftRequest* request,
    v1::DraftResponse* response) {
  return HandleCall(node_, *engine_, context, *request, *response);
}

grpc::ServerUnaryReactor* DrafterServiceImpl::Describe(
    grpc::CallbackServerContext* context,
    const v1::DrafterServiceDescribeRequest* /*request*/,
    v1::DrafterServiceDescribeResponse* response) {
  return HandleDescribe(node_, context, *response);
}

std::unique_ptr<grpc::Service> MakeDrafterService(
    Node& node, const NodeDescription& description) {
  auto engine = std::make_unique<DraftEngine>(
      MakeStrategy(description),
      DraftEngine::Options{.vocab_size = description.vocab_size,
                           .context_length = description.context_length,
                           .max_draft_tokens = description.max_draft_tokens,
                           .max_outcomes = description.max_outcomes});
  return std::make_unique<DrafterServiceImpl>(node, std::move(engine));
}

int MaxDraftRequestBytes(const NodeDescription& description) {
  return LimitsOf(description).draft_request;
}

}  // namespace outrider
