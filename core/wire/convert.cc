// SPDX-License-Identifier: Apache-2.0
#include "core/wire/convert.h"

#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/session/check_tokens.h"
#include "core/wire/field_convert.h"

namespace outrider {

v1::DraftRequest ToProto(const DraftCall& call) {
  v1::DraftRequest request;
  *request.mutable_header() = ToProto(call.header);
  request.set_max_draft_tokens(call.max_draft_tokens);
  *request.mutable_draft_options() = ToProto(call.options);
  *request.mutable_sampling() = ToProto(call.sampling);
  request.set_seed(call.seed);
  request.set_prompt_length(call.prompt_length);
  request.set_acceptance_rule(ToProto(call.rule));
  return request;
}

absl::StatusOr<DraftCall> FromProto(const v1::DraftRequest& request) {
  DraftCall call = {.seed = request.seed()};
  OUTRIDER_ASSIGN_OR_RETURN(call.header, FromProto(request.header()));
  OUTRIDER_ASSIGN_OR_RETURN(
      call.max_draft_tokens,
      ToLength(request.max_draft_tokens(), "max_draft_tokens"));
  OUTRIDER_ASSIGN_OR_RETURN(const DraftOverrides options,
                            FromProto(request.draft_options()));
  call.options = Apply(options, DraftOptions());
  OUTRIDER_ASSIGN_OR_RETURN(call.rule, FromProto(request.acceptance_rule()));
  OUTRIDER_ASSIGN_OR_RETURN(call.sampling, FromProto(request.sampling()));
  OUTRIDER_ASSIGN_OR_RETURN(call.prompt_length,
                            ToLength(request.prompt_length(), "prompt_length"));
  return call;
}

void ToProto(const DraftReply& reply, v1::DraftResponse& response) {
  *response.mutable_header() = ToProto(reply.header);
  if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
    *response.mutable_miss() = ToProto(*miss);
    return;
  }
  const Draft& draft = std::get<Draft>(reply.outcome);
  v1::DraftResult& result = *response.mutable_result();
  SetTokens(draft.tokens, result.mutable_tokens());
  const bool one_hot = absl::c_all_of(
      draft.distributions,
      [](const Distribution& q) { return q.support().size() == 1; });
  if (one_hot) return;  // the tokens say it all
  for (const Distribution& q : draft.distributions) {
    *result.add_rows() = ToProto(q);
  }
}

absl::StatusOr<DraftReply> FromProto(const v1::DraftResponse& response,
                                     uint64_t start, int vocab_size) {
  DraftReply reply;
  OUTRIDER_ASSIGN_OR_RETURN(reply.header, FromProto(response.header()));
  if (response.has_miss()) {
    OUTRIDER_ASSIGN_OR_RETURN(reply.outcome, FromProto(response.miss()));
    return reply;
  }
  Draft draft = {.start = start,
                 .tokens = ToTokens(response.result().tokens())};
  OUTRIDER_RETURN_IF_ERROR(CheckSizes(response.result().rows()));
  for (const v1::SparseRow& row : response.result().rows()) {
    OUTRIDER_ASSIGN_OR_RETURN(Distribution q, FromProto(row, vocab_size));
    draft.distributions.push_back(std::move(q));
  }
  if (draft.distributions.empty()) {
    for (const TokenId token : draft.tokens) {
      OUTRIDER_RETURN_IF_ERROR(CheckTokens({token}, vocab_size));
      draft.distributions.push_back(Distribution::OneHot(token));
    }
  }
  reply.outcome = std::move(draft);
  return reply;
}

absl::StatusOr<RequestHeader> FromProto(const v1::TruncateRequest& request) {
  RequestHeader header = {.step = request.step()};
  OUTRIDER_ASSIGN_OR_RETURN(header.session,
                            ToId(request.session_id(), "session_id"));
  OUTRIDER_ASSIGN_OR_RETURN(header.incarnation,
                            ToId(request.incarnation(), "incarnation"));
  OUTRIDER_ASSIGN_OR_RETURN(header.delta.keep_length,
                            ToLength(request.length(), "length"));
  return header;
}

absl::StatusOr<RequestHeader> FromProto(const v1::ReleaseRequest& request) {
  RequestHeader header = {.step = request.step()};
  OUTRIDER_ASSIGN_OR_RETURN(header.session,
                            ToId(request.session_id(), "session_id"));
  if (!request.incarnation().empty()) {
    OUTRIDER_ASSIGN_OR_RETURN(header.incarnation,
                              ToId(request.incarnation(), "incarnation"));
  }
  return header;
}

}  // namespace outrider
