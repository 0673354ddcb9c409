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
    : options_(std::move(options)),
      stub_(v1::DrafterService::NewStub(channel)),
      growing_stub_(std::move(channel), options_.max_receive_bytes,
                    options_.connect),
      limit_(options_.timeout) {}

Task<absl::StatusOr<DraftReply>> GrpcDraftStub::Draft(
    const DraftCall& call, Cancellation& cancellation) {
  const v1::DraftRequest request = ToProto(call);
  const auto stub = growing_stub_.get();
  const auto num_appended = call.header.delta.append_tokens.size();
  const auto begin = std::chrono::steady_clock::now();
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      const v1::DraftResponse response,
      co_await CallUnary<v1::DraftResponse>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            AddLogMetadata(call.log_ids, *context);
            return stub->PrepareAsyncDraft(context, request, queue);
          },
          {.queue = options_.queue,
           .deadline = limit_.Get() + num_appended * options_.timeout_per_token,
           .cancellation = cancellation}));
  if (call.max_draft_tokens > 0) {  // what only fills a cache takes its time
    limit_.Answered(std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin));
  }
  const uint64_t start = call.header.delta.keep_length + num_appended;
  OUTRIDER_CO_ASSIGN_OR_RETURN(DraftReply reply,
                               FromProto(response, start, vocab_size_));
  reply.sent_bytes = static_cast<int64_t>(request.ByteSizeLong());
  reply.wire_bytes =
      reply.sent_bytes + static_cast<int64_t>(response.ByteSizeLong());
  co_return reply;
}

Task<absl::StatusOr<NodeDescription>> GrpcDraftStub::Describe(
    std::chrono::milliseconds timeout, Cancellation& cancellation) {
  const v1::DrafterServiceDescribeRequest request;
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      const v1::DrafterServiceDescribeResponse response,
      co_await CallUnary<v1::DrafterServiceDescribeResponse>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            return stub_->PrepareAsyncDescribe(context, request, queue);
          },
          {.queue = options_.queue,
           .deadline = timeout,
           .cancellation = cancellation}));
  NodeDescription description = FromProto(response.node());
  set_vocab_size(description.vocab_size);
  growing_stub_.Accept(LimitsOf(description).draft_response);
  co_return description;
}

}  // namespace outrider
