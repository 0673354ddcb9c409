// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_draft_stub.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "coordinator/pool/grpc_log_metadata.h"
#include "core/base/status_macros.h"
#include "core/rpc/unary_call.h"
#include "core/wire/convert.h"
#include "core/wire/message_limits.h"
#include "core/wire/read_reply.h"

namespace outrider {

namespace {

// Passes that it took at least: a draft may be shorter than was asked for.
int NumPasses(const DraftReply& reply) {
  const auto* const draft = std::get_if<Draft>(&reply.outcome);
  int num_passes = draft == nullptr ? 1 : std::max(draft->length(), 1);
  for (const OutcomeDraft& outcome : reply.outcomes) {
    num_passes = std::max(num_passes, outcome.draft.length());
  }
  return num_passes;
}

}  // namespace

GrpcDraftStub::GrpcDraftStub(std::shared_ptr<grpc::Channel> channel,
                             Options options)
    : node_(std::move(channel), std::move(options),
            &MessageLimits::draft_response),
      pace_(node_.options().timeout) {}

Task<absl::StatusOr<DraftReply>> GrpcDraftStub::Draft(
    const DraftCall& call, Cancellation& cancellation) {
  const v1::DraftRequest request = ToProto(call);
  const auto stub = node_.stub();
  const auto num_appended = call.header.delta.append_tokens.size();
  const bool drafts = call.max_draft_tokens > 0;  // else it fills a cache
  const std::chrono::milliseconds limit = pace_.Limit(call.max_draft_tokens);
  const auto begin = std::chrono::steady_clock::now();
  const absl::StatusOr<v1::DraftResponse> response =
      co_await CallUnary<v1::DraftResponse>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            AddLogMetadata(call.log_ids, *context);
            return stub->PrepareAsyncDraft(context, request, queue);
          },
          {.queue = node_.options().queue,
           .deadline = limit + num_appended * node_.options().timeout_per_token,
           .cancellation = cancellation});
  const auto took = std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  if (drafts && absl::IsDeadlineExceeded(response.status())) {
    pace_.Late(call.max_draft_tokens, limit);
  }
  OUTRIDER_CO_RETURN_IF_ERROR(response.status());
  OUTRIDER_CO_ASSIGN_OR_RETURN(DraftReply reply,
                               ReadReply(*response, call, node_.vocab_size()));
  if (drafts) pace_.Answered(NumPasses(reply), took);
  reply.sent_bytes = static_cast<int64_t>(request.ByteSizeLong());
  reply.wire_bytes =
      reply.sent_bytes + static_cast<int64_t>(response->ByteSizeLong());
  co_return reply;
}

}  // namespace outrider
