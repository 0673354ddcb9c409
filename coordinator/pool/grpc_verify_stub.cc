// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_verify_stub.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/pool/grpc_log_metadata.h"
#include "core/base/status_macros.h"
#include "core/rpc/unary_call.h"
#include "core/wire/convert.h"
#include "core/wire/message_limits.h"

namespace outrider {
namespace {

// That the reply speaks of the tokens that the verifier described.
absl::Status CheckVocabulary(const VerifyReply& reply, int vocab_size) {
  if (const auto* rows = std::get_if<LogitRows>(&reply.outcome);
      rows != nullptr && rows->vocab_size() != vocab_size) {
    return absl::InternalError(
        absl::StrCat("the verifier sent rows of ", rows->vocab_size(),
                     " tokens and described ", vocab_size));
  }
  std::vector<TokenId> own;  // that the verifier names
  if (const auto* verdict = std::get_if<Verdict>(&reply.outcome)) {
    own.push_back(verdict->next_token);
  }
  if (const auto* rows = std::get_if<std::vector<TargetRow>>(&reply.outcome)) {
    for (const TargetRow& row : *rows) {
      if (row.tail_mass() > 0) own.push_back(row.drawn_token());
    }
  }
  for (const RowScores& scores : reply.logprobs) {
    own.insert(own.end(), scores.top_ids.begin(), scores.top_ids.end());
  }
  for (const TokenId token : own) {
    if (token < 0 || token >= vocab_size) {
      return absl::InternalError(absl::StrCat("the verifier sent token ",
                                              AsSent(token), " and described ",
                                              vocab_size, " tokens"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

GrpcVerifyStub::GrpcVerifyStub(std::shared_ptr<grpc::Channel> channel,
                               Options options)
    : options_(std::move(options)),
      stub_(v1::VerifierService::NewStub(channel)),
      growing_stub_(std::move(channel), options_.max_receive_bytes,
                    options_.connect) {}

Task<absl::StatusOr<VerifyReply>> GrpcVerifyStub::Verify(
    const VerifyCall& call, Cancellation& cancellation) {
  const v1::VerifyRequest request = ToProto(call);
  const auto stub = growing_stub_.get();
  const auto num_appended = call.header.delta.append_tokens.size();
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      v1::VerifyResponse response,
      co_await CallUnary<v1::VerifyResponse>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            AddLogMetadata(call.log_ids, *context);
            return stub->PrepareAsyncVerify(context, request, queue);
          },
          {.queue = options_.queue,
           .deadline =
               options_.timeout + num_appended * options_.timeout_per_token,
           .cancellation = cancellation}));
  const auto sent_bytes = static_cast<int64_t>(request.ByteSizeLong());
  const int64_t wire_bytes =
      sent_bytes + static_cast<int64_t>(response.ByteSizeLong());
  OUTRIDER_CO_ASSIGN_OR_RETURN(VerifyReply reply,
                               FromProto(std::move(response), call));
  OUTRIDER_CO_RETURN_IF_ERROR(CheckVocabulary(reply, vocab_size_));
  reply.wire_bytes = wire_bytes;
  reply.sent_bytes = sent_bytes;
  co_return reply;
}

Task<absl::StatusOr<NodeDescription>> GrpcVerifyStub::Describe(
    std::chrono::milliseconds timeout, Cancellation& cancellation) {
  const v1::VerifierServiceDescribeRequest request;
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      const v1::VerifierServiceDescribeResponse response,
      co_await CallUnary<v1::VerifierServiceDescribeResponse>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            return stub_->PrepareAsyncDescribe(context, request, queue);
          },
          {.queue = options_.queue,
           .deadline = timeout,
           .cancellation = cancellation}));
  NodeDescription description = FromProto(response.node());
  set_vocab_size(description.vocab_size);
  growing_stub_.Accept(LimitsOf(description).verify_response);
  co_return description;
}

}  // namespace outrider
