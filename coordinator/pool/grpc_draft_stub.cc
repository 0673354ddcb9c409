// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_draft_stub.h"

#include <utility>

#include "coordinator/pool/grpc_log_metadata.h"
#include "core/base/status_macros.h"
#include "core/rpc/unary_call.h"
#include "core/wire/convert.h"
#include "core/wire/message_limits.h"

namespace outrider {

GrpcDraftStub::GrpcDraftStub(std::shared_ptr<grpc::Channel> channel,
                             Options options)
    : node_(std::move(channel), std::move(options),
            &MessageLimits::draft_response),
      limit_(node_.options().timeout) {}

Task<absl::StatusOr<DraftReply>> GrpcDraftStub::Draft(
    const DraftCall& call, Cancellation& cancellation) {
  const v1::DraftRequest request = ToProto(call);
  const auto stub = node_.stub();
  const auto num_appended = call.header.delta.append_tokens.size();
  const auto begin = std::chrono::steady_clock::now();
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      const v1::DraftResponse response,
      co_await CallUnary<v1::DraftResponse>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            AddLogMetadata(call.log_ids, *context);
            return stub->PrepareAsyncDraft(context, request, queue);
          },
          {.queue = node_.options().queue,
           .deadline =
               limit_.Get() + num_appended * node_.options().timeout_per_token,
           .cancellation = cancellation}));
  if (call.max_draft_tokens > 0) {  // what only fills a cache takes its time
    limit_.Answered(std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin));
  }
  OUTRIDER_CO_ASSIGN_OR_RETURN(DraftReply reply,
                               FromProto(response, call, node_.vocab_size()));
  reply.sent_bytes = static_cast<int64_t>(request.ByteSizeLong());
  reply.wire_bytes =
      reply.sent_bytes + static_cast<int64_t>(response.ByteSizeLong());
  co_return reply;
}

}  // namespace outrider
