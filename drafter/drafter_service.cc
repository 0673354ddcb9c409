// SPDX-License-Identifier: Apache-2.0
#include "drafter/drafter_service.h"

#include <chrono>
#include <utility>

#include "core/base/status_macros.h"
#include "core/node/model_reactor.h"
#include "core/node/trace_log.h"
#include "core/wire/convert.h"
#include "core/wire/digest.h"
#include "core/wire/message_limits.h"

namespace outrider {

int DrafterServiceImpl::MaxRequestBytes(const NodeDescription& description) {
  return LimitsOf(description).draft_request;
}

DrafterServiceImpl::DrafterServiceImpl(DraftEngine& engine,
                                       ModelThread& model_thread,
                                       NodeDescription description)
    : engine_(engine),
      model_thread_(model_thread),
      description_(ToProto(description)) {}

grpc::ServerUnaryReactor* DrafterServiceImpl::Draft(
    grpc::CallbackServerContext* context, const v1::DraftRequest* request,
    v1::DraftResponse* response) {
  absl::StatusOr<DraftCall> call = FromProto(*request);
  if (!call.ok()) return FinishNow(context, call.status());
  LogSessionOpened(*context, call->header);
  const uint64_t digest = ContentDigest(call->header.session, *request);
  return RunOnModelThread(
      context, model_thread_, NodeCall::kModel,
      [this, call = *std::move(call), digest, response]() -> absl::Status {
        const auto start = std::chrono::steady_clock::now();
        OUTRIDER_ASSIGN_OR_RETURN(DraftReply reply,
                                  engine_.Draft(call, digest, start));
        reply.header.compute_seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                          start)
                .count();
        ToProto(reply, *response);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* DrafterServiceImpl::Describe(
    grpc::CallbackServerContext* context,
    const v1::DrafterServiceDescribeRequest* /*request*/,
    v1::DrafterServiceDescribeResponse* response) {
  if (model_thread_.counters().draining) {
    return FinishNow(context,
                     absl::UnavailableError("this node is shutting down"));
  }
  *response->mutable_node() = description_;
  return FinishNow(context, absl::OkStatus());
}

}  // namespace outrider
