// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/generation_convert.h"

#include <cstdint>

namespace outrider {
namespace {

void SetDuration(double seconds, google::protobuf::Duration* duration) {
  const int64_t nanos = static_cast<int64_t>(seconds * 1e9);
  duration->set_seconds(nanos / 1'000'000'000);
  duration->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

v1::TokenOrigin ToProto(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::kDraft:
      return v1::TOKEN_ORIGIN_DRAFT;
    case TokenOrigin::kReplacement:
      return v1::TOKEN_ORIGIN_REPLACEMENT;
    case TokenOrigin::kBonus:
      return v1::TOKEN_ORIGIN_BONUS;
  }
  return v1::TOKEN_ORIGIN_UNSPECIFIED;
}

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return v1::FINISH_REASON_EOS;
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

}  // namespace

v1::GenerateResponse FirstMessage(const GenerationRequest& request,
                                  const ModelIdentity& model) {
  v1::GenerateResponse response;
  response.set_first_index(static_cast<uint32_t>(request.delivered.size()));
  v1::GenerationStart& start = *response.mutable_start();
  start.set_seed(request.seed);
  start.set_prompt_length(static_cast<uint32_t>(request.prompt.size()));
  start.set_num_speculative_tokens(request.num_speculative_tokens);
  start.set_lossy(IsLossy(request.sampling));
  *start.mutable_model() = ToProto(model);
  return response;
}

v1::GenerateResponse ToProto(const GenerationEvent& event) {
  v1::GenerateResponse response;
  response.set_first_index(event.first_index);
  for (const CommittedToken& token : event.tokens) {
    v1::GeneratedToken& proto = *response.add_tokens();
    proto.set_id(token.id);
    proto.set_text(token.text);
    proto.set_origin(ToProto(token.origin));
    if (!token.logprobs.has_value()) continue;
    proto.set_logprob(token.logprobs->logprob);
    for (const TokenLogprob& top : token.logprobs->top) {
      v1::TokenLogprob& added = *proto.add_top_logprobs();
      added.set_id(top.id);
      added.set_logprob(top.logprob);
    }
  }
  v1::RoundStats& round = *response.mutable_round();
  round.set_num_drafted(event.round.num_drafted);
  round.set_num_accepted(event.round.num_accepted);
  SetDuration(event.round.drafter.call_seconds, round.mutable_draft_time());
  SetDuration(event.round.verifier.call_seconds, round.mutable_verify_time());
  SetDuration(event.round.drafter.compute_seconds,
              round.mutable_draft_compute_time());
  SetDuration(event.round.verifier.compute_seconds,
              round.mutable_verify_compute_time());
  SetDuration(event.round.round_seconds, round.mutable_round_time());
  round.set_drafter_bytes(event.round.drafter.wire_bytes);
  round.set_verifier_bytes(event.round.verifier.wire_bytes);
  round.set_drafter_messages(event.round.drafter.num_messages);
  round.set_verifier_messages(event.round.verifier.num_messages);
  round.set_num_looked_up(event.round.num_looked_up);
  return response;
}

v1::GenerateResponse LastMessage(const GenerationEnd& end) {
  v1::GenerateResponse response;
  response.set_first_index(static_cast<uint32_t>(end.num_tokens));
  v1::GenerationFinish& finish = *response.mutable_finish();
  finish.set_reason(ToProto(end.reason));
  finish.set_trailing_text(end.trailing_text);
  finish.set_num_draft_failures(end.num_draft_failures);
  finish.set_num_misses(end.num_misses);
  finish.set_cached_prompt_tokens(end.num_cached_prompt_tokens);
  return response;
}

v1::GenerationServiceDescribeResponse ToProto(const NodePool::Overview& nodes) {
  v1::GenerationServiceDescribeResponse response;
  for (const NodeDescription& node : nodes.verifiers) {
    *response.add_verifiers() = ToProto(node);
  }
  for (const NodeDescription& node : nodes.drafters) {
    *response.add_drafters() = ToProto(node);
  }
  for (const std::string& problem : nodes.refused_verifiers) {
    response.add_refused_verifiers(problem);
  }
  for (const std::string& problem : nodes.refused_drafters) {
    response.add_refused_drafters(problem);
  }
  return response;
}

}  // namespace outrider
