// SPDX-License-Identifier: Apache-2.0
#include "drafter/drafter_service.h"

#include <utility>

#include "core/node/node_call.h"
#include "core/wire/message_limits.h"
#include "drafter/load_drafter.h"
#include "outrider/v1/drafter.grpc.pb.h"

namespace outrider {

std::vector<RpcMethod> DrafterServiceImpl::Methods() {
  const char* const service = v1::DrafterService::service_full_name();
  return {MethodOf<v1::DraftRequest>(
              service, "Draft",
              [this](ServerCall& call, const v1::DraftRequest& request) {
                HandleCall<v1::DraftResponse>(node_, *engine_, call, request);
              }),
          Small(MethodOf<v1::DrafterServiceDescribeRequest>(
              service, "Describe", [this](ServerCall& call, const auto&) {
                HandleDescribe<v1::DrafterServiceDescribeResponse>(node_, call);
              }))};
}

std::unique_ptr<RpcService> MakeDrafterService(
    Node& node, const NodeDescription& description) {
  auto engine = std::make_unique<DraftEngine>(
      MakeStrategy(description),
      DraftEngine::Options{.vocab_size = description.vocab_size,
                           .context_length = description.context_length,
                           .max_draft_tokens = description.max_draft_tokens,
                           .max_outcomes = description.max_outcomes,
                           .model_answers = node.model().answers_questions()});
  return std::make_unique<DrafterServiceImpl>(node, std::move(engine));
}

int MaxDraftRequestBytes(const NodeDescription& description) {
  return LimitsOf(description).draft_request;
}

}  // namespace outrider
