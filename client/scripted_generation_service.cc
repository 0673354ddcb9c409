// SPDX-License-Identifier: Apache-2.0
#include "client/scripted_generation_service.h"

#include <grpcpp/server_builder.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/wire/generation_convert.h"

namespace outrider::client {
ScriptedGenerationService::ScriptedGenerationService(Script script)
    : script_(std::move(script)) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  OUTRIDER_CHECK(server_ != nullptr);
  address_ = absl::StrCat("127.0.0.1:", port);
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
    writer->Write(outrider::ToProto(update));
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
  verifier.mutable_activity()->set_num_passes(4);
  verifier.mutable_activity()->set_num_rows(30);
  verifier.mutable_activity()->set_num_pass_sessions(16);
  verifier.mutable_activity()->set_num_decode_calls(2);
  verifier.mutable_activity()->mutable_decode_queue_time()->set_nanos(3000000);
  verifier.mutable_activity()->set_num_kv_blocks(90);
  v1::GpuActivity& gpu = *verifier.mutable_activity()->mutable_gpu();
  gpu.set_name("a GPU");
  gpu.set_memory_bytes(3 << 20);
  gpu.set_num_graphs(4);
  gpu.set_num_late_graphs(1);
  gpu.set_num_graph_replays(50);
  gpu.set_num_answered_rows(60);
  gpu.set_num_copied_rows(7);
  gpu.set_num_undecided_rows(2);
  verifier.set_kv_cache_bytes(1 << 19);
  verifier.set_dtype("float32");
  verifier.set_device("cpu");
  verifier.set_numerics("avx2");
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
                                             .numerics = "avx2"},
                                   .cache_salt = "secret",
                                   .num_cached_prompt_tokens = 4}};
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
                                     .num_misses = 1}};
}

ScriptedGenerationService::Script TwoRounds() {
  GenerationUpdate first = TokensUpdate(
      0, {TokenOrigin::kDraft, TokenOrigin::kDraft, TokenOrigin::kBonus});
  first.round = RoundStats{.num_drafted = 2,
                           .num_accepted = 2,
                           .round_seconds = 0.04,
                           .drafter = {.call_seconds = 0.01,
                                       .compute_seconds = 0.009,
                                       .wire_bytes = 100,
                                       .num_messages = 2},
                           .verifier = {.call_seconds = 0.02,
                                        .compute_seconds = 0.018,
                                        .wire_bytes = 1900,
                                        .num_messages = 2}};
  GenerationUpdate second = TokensUpdate(3, {TokenOrigin::kReplacement});
  second.round = RoundStats{.num_drafted = 2,
                            .num_accepted = 0,
                            .round_seconds = 0.01,
                            .drafter = {.call_seconds = 0.002,
                                        .compute_seconds = 0.001,
                                        .wire_bytes = 100,
                                        .num_messages = 2},
                            .verifier = {.call_seconds = 0.005,
                                         .compute_seconds = 0.004,
                                         .wire_bytes = 1900,
                                         .num_messages = 2}};
  return {.updates = {StartUpdate(), first, second, FinishUpdate("!")}};
}

}  // namespace outrider::client
