// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_CALL_H_
#define OUTRIDER_CORE_NODE_NODE_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/node/node.h"
#include "core/node/node_counters.h"
#include "core/node/trace_log.h"
#include "core/rpc/metadata_limits.h"
#include "core/rpc/status_convert.h"
#include "core/wire/convert.h"
#include "core/wire/digest.h"

namespace outrider {

// `auto`, here and below, as a template's name begins with its result's, and
// those that begin with `grpc::` are none of ours to tests/tsan.supp.
inline auto FinishNow(grpc::CallbackServerContext* context,
                      const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// Handles a Draft or a Verify: validates and converts, and hands the engine's
// work to the node; the reply goes out when the work is done. The reaction
// itself never waits. Each call is counted.
template <typename Engine, typename Request, typename Response>
auto HandleCall(Node& node, const Engine& engine,
                grpc::CallbackServerContext* context, const Request& request,
                Response& response) {
  using Call = typename Engine::Call;
  using Reply = typename Engine::Reply;
  if (const absl::Status status = CheckMetadata(*context); !status.ok()) {
    return FinishNow(context, status);
  }
  NodeCounters& counters = node.counters();
  counters.Started();
  absl::StatusOr<Call> call = FromProto(request);
  const absl::Status status = call.ok() ? engine.Check(*call) : call.status();
  if (!status.ok()) {
    counters.Finished(NodeCall::kModel, status.code(), 0);
    return FinishNow(context, status);
  }
  LogSessionOpened(*context, call->header);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto finish = [&counters, &response,
                       reactor](const absl::StatusOr<Reply>& reply) {
    double compute_seconds = 0;
    if (reply.ok()) {
      ToProto(*reply, response);
      response.mutable_header()->set_draining(counters.draining);
      compute_seconds = reply->header.compute_seconds;
    } else if (absl::IsInternal(reply.status())) {
      OUTRIDER_LOG(kError) << "a session failed: " << reply.status();
    }
    // This comes before the reply, as a caller that reads the counters after it
    // finds itself in them.
    counters.Finished(NodeCall::kModel, reply.status().code(), compute_seconds);
    reactor->Finish(ToGrpcStatus(reply.status()));
  };
  const uint64_t digest = ContentDigest(call->header.session, request);
  node.engine().Submit(engine.MakeWork(
      *std::move(call), digest, [context] { return context->IsCancelled(); },
      finish));
  return reactor;
}

template <typename Response>
auto HandleDescribe(const Node& node, grpc::CallbackServerContext* context,
                    Response& response) {
  return FinishNow(context, node.Describe(*response.mutable_node()));
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_CALL_H_
