// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_CALL_H_
#define OUTRIDER_CORE_NODE_NODE_CALL_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/node/node.h"
#include "core/node/node_counters.h"
#include "core/node/trace_log.h"
#include "core/rpc/server_call.h"
#include "core/rpc/status_convert.h"
#include "core/wire/convert.h"
#include "core/wire/digest.h"

namespace outrider {

// Handles a Draft or a Verify: validates and converts, and hands the engine's
// work to the node; the reply goes out when the work is done. Each call is
// counted.
template <typename Response, typename Engine, typename Request>
void HandleCall(Node& node, const Engine& engine, ServerCall& server_call,
                const Request& request) {
  using Call = typename Engine::Call;
  using Reply = typename Engine::Reply;
  NodeCounters& counters = node.counters();
  counters.Started();
  absl::StatusOr<Call> call = FromProto(request);
  const absl::Status status = call.ok() ? engine.Check(*call) : call.status();
  if (!status.ok()) {
    counters.Finished(NodeCall::kModel, status.code(), 0);
    server_call.Finish(ToGrpcStatus(status));
    return;
  }
  LogSessionOpened(server_call.context(), call->header);
  const bool is_suspect = node.suspects().Began(call->header.session);
  const auto finish = [&node, &counters, &server_call, is_suspect,
                       opens = call->header.incarnation.is_none()](
                          const absl::StatusOr<Reply>& reply) {
    if (is_suspect) node.suspects().Ended();
    // What is counted comes before the reply, as a caller that reads the
    // counters after it finds itself in them.
    if (!reply.ok()) {
      if (absl::IsInternal(reply.status())) {
        OUTRIDER_LOG(kError) << "a session failed: " << reply.status();
      }
      counters.Finished(NodeCall::kModel, reply.status().code(), 0);
      server_call.Finish(ToGrpcStatus(reply.status()));
      return;
    }
    Response response;
    ToProto(*reply, response);
    response.mutable_header()->set_draining(counters.draining);
    if (opens) *response.mutable_header()->mutable_model() = node.identity();
    counters.Finished(NodeCall::kModel, absl::StatusCode::kOk,
                      reply->header.compute_seconds);
    server_call.Reply(response);
  };
  const uint64_t digest = ContentDigest(call->header.session, request);
  node.engine().Submit(engine.MakeWork(
      *std::move(call), digest,
      [&server_call] { return server_call.is_cancelled(); }, finish));
}

template <typename Response>
void HandleDescribe(const Node& node, ServerCall& call) {
  Response response;
  const absl::Status status = node.Describe(*response.mutable_node());
  if (status.ok()) {
    call.Reply(response);
  } else {
    call.Finish(ToGrpcStatus(status));
  }
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_CALL_H_
