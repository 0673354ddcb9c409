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
namespace {

absl::Status CheckOutcomeFields(const DraftCall& call) {
  if (!(call.acceptance >= 0 && call.acceptance <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "acceptance must be between 0 and 1, not ", call.acceptance));
  }
  if (call.max_outcomes == 0 && !call.in_flight_tokens.empty()) {
    return absl::InvalidArgumentError(
        "in_flight_tokens come where max_outcomes is above 0");
  }
  return absl::OkStatus();
}

v1::DraftResult ToResult(const Draft& draft) {
  v1::DraftResult result;
  SetTokens(draft.tokens, result.mutable_tokens());
  result.mutable_confidences()->Assign(draft.confidences.begin(),
                                       draft.confidences.end());
  const bool one_hot = absl::c_all_of(
      draft.distributions,
      [](const Distribution& q) { return q.support().size() == 1; });
  if (one_hot) return result;  // the tokens say it all
  for (const Distribution& q : draft.distributions) {
    *result.add_rows() = ToProto(q);
  }
  return result;
}

absl::Status CheckConfidences(const Draft& draft) {
  const bool are_of_tokens = draft.confidences.empty() ||
                             draft.confidences.size() == draft.tokens.size();
  const bool are_probabilities = absl::c_all_of(
      draft.confidences, [](float one) { return one > 0 && one <= 1; });
  if (are_of_tokens && are_probabilities) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("confidences must be in (0, 1] and as many as tokens, ",
                   draft.tokens.size(), ", or none"));
}

absl::StatusOr<Draft> ReadDraft(const v1::DraftResult& result, uint64_t start,
                                int vocab_size) {
  Draft draft = {.start = start,
                 .tokens = ToTokens(result.tokens()),
                 .confidences = {result.confidences().begin(),
                                 result.confidences().end()}};
  OUTRIDER_RETURN_IF_ERROR(CheckConfidences(draft));
  draft.distributions.reserve(draft.tokens.size());
  for (const v1::SparseRow& row : result.rows()) {
    OUTRIDER_ASSIGN_OR_RETURN(Distribution q, FromProto(row, vocab_size));
    draft.distributions.push_back(std::move(q));
  }
  if (draft.distributions.empty()) {
    for (const TokenId token : draft.tokens) {
      OUTRIDER_RETURN_IF_ERROR(CheckTokens({token}, vocab_size));
      draft.distributions.push_back(Distribution::OneHot(token));
    }
  }
  return draft;
}

absl::Status CheckSizes(const v1::DraftResponse& response) {
  uint64_t num_ids = NumIds(response.result().rows());
  for (const v1::OutcomeDraft& outcome : response.outcomes()) {
    num_ids += NumIds(outcome.draft().rows());
  }
  return CheckNumIds(num_ids);
}

// Whether the outcome is one that the drafts in flight may have.
absl::Status CheckOutcome(const OutcomeDraft& outcome, const DraftCall& call,
                          int vocab_size) {
  const size_t num_in_flight = call.in_flight_tokens.size();
  const auto num_accepted = static_cast<size_t>(outcome.num_accepted);
  OUTRIDER_RETURN_IF_ERROR(CheckTokens({outcome.next_token}, vocab_size));
  if (num_accepted > num_in_flight ||
      (num_accepted < num_in_flight &&
       outcome.next_token == call.in_flight_tokens[num_accepted])) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the drafter drafted for token ", outcome.next_token, " after ",
        outcome.num_accepted, " of ", num_in_flight, " drafts in flight"));
  }
  return absl::OkStatus();
}

absl::Status ReadOutcomes(const v1::DraftResponse& response,
                          const DraftCall& call, int vocab_size,
                          std::vector<OutcomeDraft>& outcomes) {
  if (response.outcomes_size() > call.max_outcomes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the drafter sent drafts for ", response.outcomes_size(),
                     " outcomes, not for ", call.max_outcomes));
  }
  for (const v1::OutcomeDraft& proto : response.outcomes()) {
    OutcomeDraft outcome = {.next_token =
                                static_cast<TokenId>(proto.next_token())};
    OUTRIDER_ASSIGN_OR_RETURN(outcome.num_accepted,
                              ToLength(proto.num_accepted(), "num_accepted"));
    OUTRIDER_RETURN_IF_ERROR(CheckOutcome(outcome, call, vocab_size));
    const uint64_t start =
        call.header.delta.length() + outcome.num_accepted + 1;
    OUTRIDER_ASSIGN_OR_RETURN(outcome.draft,
                              ReadDraft(proto.draft(), start, vocab_size));
    outcomes.push_back(std::move(outcome));
  }
  return absl::OkStatus();
}

}  // namespace

v1::DraftRequest ToProto(const DraftCall& call) {
  v1::DraftRequest request;
  *request.mutable_header() = ToProto(call.header);
  request.set_max_draft_tokens(call.max_draft_tokens);
  *request.mutable_draft_options() = ToProto(call.options);
  *request.mutable_sampling() = ToProto(call.sampling);
  request.set_seed(call.seed);
  request.set_prompt_length(call.prompt_length);
  request.set_acceptance_rule(ToProto(call.rule));
  SetTokens(call.in_flight_tokens, request.mutable_in_flight_tokens());
  request.set_max_outcomes(call.max_outcomes);
  request.set_acceptance(call.acceptance);
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
  call.in_flight_tokens = ToTokens(request.in_flight_tokens());
  OUTRIDER_ASSIGN_OR_RETURN(call.max_outcomes,
                            ToLength(request.max_outcomes(), "max_outcomes"));
  call.acceptance = request.acceptance();
  OUTRIDER_RETURN_IF_ERROR(CheckOutcomeFields(call));
  return call;
}

void ToProto(const DraftReply& reply, v1::DraftResponse& response) {
  *response.mutable_header() = ToProto(reply.header);
  if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
    *response.mutable_miss() = ToProto(*miss);
    return;
  }
  *response.mutable_result() = ToResult(std::get<Draft>(reply.outcome));
  for (const OutcomeDraft& outcome : reply.outcomes) {
    v1::OutcomeDraft& added = *response.add_outcomes();
    added.set_num_accepted(outcome.num_accepted);
    added.set_next_token(outcome.next_token);
    *added.mutable_draft() = ToResult(outcome.draft);
  }
}

absl::StatusOr<DraftReply> FromProto(const v1::DraftResponse& response,
                                     const DraftCall& call, int vocab_size) {
  DraftReply reply;
  OUTRIDER_ASSIGN_OR_RETURN(reply.header, FromProto(response.header()));
  if (response.header().has_model()) {
    reply.model = FromProto(response.header().model());
  }
  if (response.has_miss()) {
    OUTRIDER_ASSIGN_OR_RETURN(reply.outcome, FromProto(response.miss()));
    return reply;
  }
  OUTRIDER_RETURN_IF_ERROR(CheckSizes(response));
  OUTRIDER_ASSIGN_OR_RETURN(
      reply.outcome,
      ReadDraft(response.result(), call.header.delta.length(), vocab_size));
  OUTRIDER_RETURN_IF_ERROR(
      ReadOutcomes(response, call, vocab_size, reply.outcomes));
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
  RequestHeader header = {.step = request.step(),
                          .is_over = request.text_is_over()};
  OUTRIDER_ASSIGN_OR_RETURN(header.session,
                            ToId(request.session_id(), "session_id"));
  if (!request.incarnation().empty()) {
    OUTRIDER_ASSIGN_OR_RETURN(header.incarnation,
                              ToId(request.incarnation(), "incarnation"));
  }
  return header;
}

}  // namespace outrider
