// SPDX-License-Identifier: Apache-2.0
#include "client/scripted_generation_service.h"

#include <thread>
#include <utility>

#include "core/base/check.h"

namespace outrider::client {
namespace {

void Set(std::chrono::nanoseconds time, google::protobuf::Duration* proto) {
  proto->set_seconds(time.count() / 1'000'000'000);
  proto->set_nanos(static_cast<int32_t>(time.count() % 1'000'000'000));
}

void Set(const GenerationRound& round, v1::RoundStats* proto) {
  proto->set_num_drafted(round.num_drafted);
  proto->set_num_accepted(round.num_accepted);
  Set(round.draft_time, proto->mutable_draft_time());
  Set(round.verify_time, proto->mutable_verify_time());
  Set(round.draft_compute_time, proto->mutable_draft_compute_time());
  Set(round.verify_compute_time, proto->mutable_verify_compute_time());
  Set(round.round_time, proto->mutable_round_time());
  proto->set_drafter_bytes(round.drafter_bytes);
  proto->set_verifier_bytes(round.verifier_bytes);
  proto->set_drafter_messages(round.drafter_messages);
  proto->set_verifier_messages(round.verifier_messages);
  proto->set_num_looked_up(round.num_looked_up);
}

// The enumerators have the proto's order.
v1::GenerateResponse ToProto(const GenerationUpdate& update) {
  v1::GenerateResponse proto;
  if (update.start) {
    proto.mutable_start()->set_seed(update.start->seed);
    proto.mutable_start()->set_prompt_length(update.start->prompt_length);
    proto.mutable_start()->set_num_speculative_tokens(
        update.start->num_speculative_tokens);
    proto.mutable_start()->set_lossy(update.start->is_lossy);
    *proto.mutable_start()->mutable_model() =
        outrider::ToProto(update.start->model);
  }
  proto.set_first_index(update.first_index);
  for (const GeneratedToken& token : update.tokens) {
    v1::GeneratedToken& added = *proto.add_tokens();
    added.set_id(token.id);
    added.set_text(token.text);
    added.set_origin(static_cast<v1::TokenOrigin>(token.origin));
    if (token.logprob) added.set_logprob(*token.logprob);
    for (const TokenLogprob& top : token.top_logprobs) {
      v1::TokenLogprob& entry = *added.add_top_logprobs();
      entry.set_id(top.id);
      entry.set_logprob(top.logprob);
    }
  }
  if (update.round) Set(*update.round, proto.mutable_round());
  if (update.finish) {
    v1::GenerationFinish& finish = *proto.mutable_finish();
    finish.set_reason(static_cast<v1::FinishReason>(update.finish->reason));
    finish.set_trailing_text(update.finish->trailing_text);
    finish.set_num_draft_failures(update.finish->num_draft_failures);
    finish.set_num_misses(update.finish->num_misses);
    finish.set_cached_prompt_tokens(update.finish->num_cached_prompt_tokens);
  }
  return proto;
}

}  // namespace

ScriptedGenerationService::ScriptedGenerationService(Script script)
    : script_(std::move(script)) {
  auto server = RpcServer::Start({.listen = "127.0.0.1:0"}, {this});
  OUTRIDER_CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
}

v1::GenerateRequest ScriptedGenerationService::last_request() const {
  MutexLock lock(mu_);
  return requests_.empty() ? v1::GenerateRequest() : requests_.back();
}

std::vector<v1::GenerateRequest> ScriptedGenerationService::requests() const {
  MutexLock lock(mu_);
  return requests_;
}

grpc::Status ScriptedGenerationService::Generate(
    grpc::ServerContext* context, const v1::GenerateRequest* request,
    grpc::ServerWriter<v1::GenerateResponse>* writer) {
  {
    MutexLock lock(mu_);
    requests_.push_back(*request);
  }
  for (const GenerationUpdate& update : script_.updates) {
    writer->Write(ToProto(update));
  }
  while (script_.waits_for_cancel && !context->IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return script_.status;
}

grpc::Status ScriptedGenerationService::Describe(
    grpc::ServerContext* /*context*/,
    const v1::GenerationServiceDescribeRequest* /*request*/,
    v1::GenerationServiceDescribeResponse* response) {
  if (script_.deployment) {
    *response = *script_.deployment;
    return script_.status;
  }
  v1::NodeDescription& verifier = *response->add_verifiers();
  verifier.set_model_name("demo-target");
  verifier.set_dtype("float32");
  verifier.set_device("cpu");
  verifier.set_vocab_size(4096);
  verifier.add_acceptance_rules(v1::ACCEPTANCE_RULE_REJECTION);
  verifier.add_acceptance_rules(v1::ACCEPTANCE_RULE_BLOCK);
  verifier.add_acceptance_rules(v1::ACCEPTANCE_RULE_COUPLED);
  verifier.add_reply_formats(v1::REPLY_FORMAT_FULL_BFLOAT16);
  verifier.add_reply_formats(v1::REPLY_FORMAT_TOKENS);
  response->add_refused_drafters("another tokenizer");
  return script_.status;
}

GenerationUpdate StartUpdate() {
  return {.start = GenerationStart{.seed = ~uint64_t{2},
                                   .prompt_length = 5,
                                   .num_speculative_tokens = 2,
                                   .model = {.weights_hash = "0123abcd",
                                             .dtype = "float32",
                                             .numerics = "avx2"}}};
}

GenerationUpdate TokensUpdate(int first_index,
                              const std::vector<TokenOrigin>& origins) {
  GenerationUpdate update = {.first_index = first_index};
  for (const TokenOrigin origin : origins) {
    const int index = first_index + static_cast<int>(update.tokens.size());
    update.tokens.push_back(
        {.id = index,
         .text = std::string(1, static_cast<char>('a' + index)),
         .origin = origin});
  }
  return update;
}

GenerationUpdate FinishUpdate(const std::string& trailing_text) {
  return {.finish = GenerationFinish{.reason = FinishReason::kLength,
                                     .trailing_text = trailing_text,
                                     .num_draft_failures = 3,
                                     .num_misses = 1,
                                     .num_cached_prompt_tokens = 4}};
}

ScriptedGenerationService::Script TwoRounds() {
  using std::chrono::milliseconds;
  GenerationUpdate first = TokensUpdate(
      0, {TokenOrigin::kDraft, TokenOrigin::kDraft, TokenOrigin::kBonus});
  first.round = {.num_drafted = 2,
                 .num_accepted = 2,
                 .draft_time = milliseconds(10),
                 .verify_time = milliseconds(20),
                 .draft_compute_time = milliseconds(9),
                 .verify_compute_time = milliseconds(18),
                 .round_time = milliseconds(40),
                 .drafter_bytes = 100,
                 .verifier_bytes = 1900,
                 .drafter_messages = 2,
                 .verifier_messages = 2};
  GenerationUpdate second = TokensUpdate(3, {TokenOrigin::kReplacement});
  second.round = {.num_drafted = 2,
                  .num_accepted = 0,
                  .draft_time = milliseconds(2),
                  .verify_time = milliseconds(5),
                  .draft_compute_time = milliseconds(1),
                  .verify_compute_time = milliseconds(4),
                  .round_time = milliseconds(10),
                  .drafter_bytes = 100,
                  .verifier_bytes = 1900,
                  .drafter_messages = 2,
                  .verifier_messages = 2};
  return {.updates = {StartUpdate(), first, second, FinishUpdate("!")}};
}

}  // namespace outrider::client
