// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_verify_stub.h"

#include <utility>

#include "coordinator/peers/miss_recovery.h"
#include "coordinator/pool/grpc_log_metadata.h"
#include "core/base/status_macros.h"
#include "core/rpc/unary_call.h"
#include "core/wire/convert.h"
#include "core/wire/message_limits.h"
#include "core/wire/read_reply.h"

namespace outrider {

GrpcVerifyStub::GrpcVerifyStub(std::shared_ptr<grpc::Channel> channel,
                               Options options)
    : node_(std::move(channel), std::move(options),
            &MessageLimits::verify_response) {}

std::chrono::milliseconds GrpcVerifyStub::TimeoutOf(
    const VerifyCall& call) const {
  return node_.options().timeout + call.header.delta.append_tokens.size() *
                                       node_.options().timeout_per_token;
}

Task<absl::StatusOr<VerifyReply>> GrpcVerifyStub::Verify(
    const VerifyCall& call, std::chrono::milliseconds timeout,
    Cancellation& cancellation) {
  const v1::VerifyRequest request = ToProto(call);
  const auto stub = node_.stub();
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      v1::VerifyResponse response,
      co_await CallUnary<v1::VerifyResponse>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            AddLogMetadata(call.log_ids, *context);
            return stub->PrepareAsyncVerify(context, request, queue);
          },
          {.queue = node_.options().queue,
           .deadline = timeout,
           .cancellation = cancellation}));
  const auto sent_bytes = static_cast<int64_t>(request.ByteSizeLong());
  const int64_t wire_bytes =
      sent_bytes + static_cast<int64_t>(response.ByteSizeLong());
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      VerifyReply reply,
      ReadReply(std::move(response), call, node_.vocab_size()));
  OUTRIDER_CO_RETURN_IF_ERROR(CheckEcho(call.header, reply.header));
  reply.wire_bytes = wire_bytes;
  reply.sent_bytes = sent_bytes;
  co_return reply;
}

Task<absl::StatusOr<bool>> GrpcVerifyStub::Isolate(
    const SessionId& session, std::chrono::milliseconds timeout,
    Cancellation& cancellation) {
  v1::IsolateRequest request;
  request.set_session_id(session.ToBytes());
  const auto stub = node_.stub();
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      const v1::IsolateResponse response,
      co_await CallUnary<v1::IsolateResponse>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            return stub->PrepareAsyncIsolate(context, request, queue);
          },
          {.queue = node_.options().queue,
           .deadline = timeout,
           .cancellation = cancellation}));
  co_return response.granted();
}

}  // namespace outrider
