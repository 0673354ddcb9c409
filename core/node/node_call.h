// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_CALL_H_
#define OUTRIDER_CORE_NODE_NODE_CALL_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/log.h"
#include "core/base/retry_delay.h"
#include "core/base/session_id.h"
#include "core/base/status_macros.h"
#include "core/base/thrown_status.h"
#include "core/engine/work.h"
#include "core/node/node.h"
#include "core/node/node_counters.h"
#include "core/node/trace_log.h"
#include "core/rpc/server_call.h"
#include "core/rpc/status_convert.h"
#include "core/session/cache_delta.h"
#include "core/wire/convert.h"
#include "core/wire/digest.h"

namespace outrider {

// Handles a Draft or a Verify: validates and converts, and hands the engine's
// work to the node; the reply goes out when the work is done. Each call is
// counted. What is thrown before the work is handed over, or while its reply is
// made, ends this call alone, as all that is used there is the call's own.
template <typename Response, typename Engine, typename Request>
void HandleCall(Node& node, const Engine& engine, ServerCall& server_call,
                const Request& request) {
  using Call = typename Engine::Call;
  using Reply = typename Engine::Reply;
  NodeCounters& counters = node.counters();
  counters.Started();
  const auto fail = [&counters, &server_call](const absl::Status& status) {
    if (absl::IsInternal(status)) {
      OUTRIDER_LOG(kError) << server_call.method() << " failed: " << status;
    }
    counters.Finished(NodeCall::kModel, status.code(), 0);
    server_call.Finish(ToGrpcStatus(status));
  };
  const auto read = [&]() -> absl::StatusOr<Call> {
    OUTRIDER_ASSIGN_OR_RETURN(Call call, FromProto(request));
    OUTRIDER_RETURN_IF_ERROR(engine.Check(call));
    return call;
  };
  absl::StatusOr<Call> call = CatchThrown("reading the request", read);
  if (!call.ok()) return fail(call.status());
  const SessionId session = call->header.session;
  const bool is_suspect = node.suspects().Began(session);
  const auto finish = [&node, fail, &counters, &server_call, session,
                       is_suspect, opens = call->header.incarnation.is_none()](
                          const absl::StatusOr<Reply>& reply) {
    if (is_suspect) node.suspects().Ended();
    if (!reply.ok()) return fail(reply.status());
    Response response;
    const absl::Status written = CatchThrown("writing the reply", [&] {
      ToProto(*reply, response);
      response.mutable_header()->set_draining(counters.draining);
      if (opens) *response.mutable_header()->mutable_model() = node.identity();
      return absl::OkStatus();
    });
    if (!written.ok()) return fail(written);
    if (opens && !std::holds_alternative<Miss>(reply->outcome)) {
      LogSessionOpened(server_call.context(), session);
    }
    // What is counted comes before the reply, as a caller that reads the
    // counters after it finds itself in them.
    counters.Finished(NodeCall::kModel, absl::StatusCode::kOk,
                      reply->header.compute_seconds);
    server_call.Reply(response);
  };
  const auto make = [&]() -> absl::StatusOr<std::unique_ptr<Work>> {
    const uint64_t digest = ContentDigest(session, request);
    return engine.MakeWork(
        *std::move(call), digest,
        [&server_call] { return server_call.is_cancelled(); }, finish);
  };
  absl::StatusOr<std::unique_ptr<Work>> work =
      CatchThrown("beginning the work", make);
  if (!work.ok()) return finish(work.status());
  node.engine().Submit(*std::move(work));
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
