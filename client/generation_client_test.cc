// SPDX-License-Identifier: Apache-2.0
#include "client/generation_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>

#include "client/scripted_generation_service.h"
#include "core/base/status_macros.h"

namespace outrider::client {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TokenOrigin kDraft = TokenOrigin::kDraft;
constexpr TokenOrigin kBonus = TokenOrigin::kBonus;

// Reads to the end; the ids in order.
absl::StatusOr<TokenSeq> ReadIds(GenerationStream& stream) {
  TokenSeq ids;
  while (true) {
    OUTRIDER_ASSIGN_OR_RETURN(const auto update, stream.Next());
    if (!update.has_value()) return ids;
    for (const GeneratedToken& token : update->tokens) ids.push_back(token.id);
  }
}

absl::StatusOr<TokenSeq> GenerateIds(const ScriptedGenerationService& service,
                                     const GenerationRequest& request = {}) {
  GenerationClient client(service.address());
  return ReadIds(*client.Generate(request, seconds(20)));
}

TEST(GenerationClientTest, DeliversMessagesInOrderAndThenNothing) {
  ScriptedGenerationService service(TwoRounds());
  GenerationClient client(service.address());
  const auto stream = client.Generate({.prompt = "hello"}, seconds(20));
  const auto start = stream->Next();
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ((*start)->start->seed, ~uint64_t{2});
  EXPECT_EQ((*start)->start->prompt_length, 5);
  EXPECT_EQ((*start)->start->num_cached_prompt_tokens, 4);
  const auto first = stream->Next();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ((*first)->tokens.size(), 3);
  EXPECT_EQ((*first)->tokens[1].text, "b");
  EXPECT_EQ((*first)->tokens[1].origin, kDraft);
  EXPECT_EQ((*first)->round->verifier.call_seconds, 0.02);
  EXPECT_EQ((*first)->round->verifier.wire_bytes, 1900);
  ASSERT_TRUE(stream->Next().ok());
  const auto last = stream->Next();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ((*last)->finish->reason, FinishReason::kLength);
  EXPECT_EQ((*last)->finish->num_misses, 1);
  const auto nothing = stream->Next();
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_FALSE(nothing->has_value());
}

TEST(GenerationClientTest, TokensThatWereDeliveredBeforeAreDropped) {
  const ScriptedGenerationService service(
      {.updates = {StartUpdate(), TokensUpdate(0, {kDraft, kDraft, kBonus}),
                   TokensUpdate(1, {kDraft, kBonus}),          // a duplicate
                   TokensUpdate(2, {kDraft, kDraft, kBonus}),  // overlaps
                   FinishUpdate()}});
  const auto ids = GenerateIds(service);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_THAT(*ids, ElementsAre(0, 1, 2, 3, 4));
}

TEST(GenerationClientTest, AGapInTheIndicesIsAnErrorAndEndsTheStream) {
  ScriptedGenerationService service(
      {.updates = {StartUpdate(), TokensUpdate(0, {kBonus}),
                   TokensUpdate(2, {kBonus})},
       .waits_for_cancel = true});
  GenerationClient client(service.address());
  const auto stream = client.Generate({}, seconds(20));
  const auto ids = ReadIds(*stream);
  EXPECT_TRUE(absl::IsInternal(ids.status())) << ids.status();
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("expected 1"));
  EXPECT_FALSE((*stream->Next()).has_value());
}

TEST(GenerationClientTest, AFirstIndexBeyondIntIsAGapToo) {
  GenerationUpdate far = TokensUpdate(0, {kBonus});
  far.first_index = -1;  // 2^32 - 1 on the wire
  const ScriptedGenerationService service({.updates = {StartUpdate(), far}});
  EXPECT_TRUE(absl::IsInternal(GenerateIds(service).status()));
}

TEST(GenerationClientTest, AStreamThatEndsWithoutFinishIsAnError) {
  const ScriptedGenerationService service(
      {.updates = {StartUpdate(), TokensUpdate(0, {kBonus})}});
  EXPECT_TRUE(absl::IsInternal(GenerateIds(service).status()));
}

TEST(GenerationClientTest, AStreamThatBeginsWithoutStartIsAnError) {
  const ScriptedGenerationService service(
      {.updates = {TokensUpdate(0, {kBonus}), FinishUpdate()}});
  EXPECT_TRUE(absl::IsInternal(GenerateIds(service).status()));
}

TEST(GenerationClientTest, TheCoordinatorsStatusComesThrough) {
  const ScriptedGenerationService service(
      {.status = {grpc::StatusCode::INVALID_ARGUMENT, "top_p is 3"}});
  const absl::Status status = GenerateIds(service).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(), "top_p is 3");
}

// A proxy may compress what a coordinator says.
TEST(GenerationClientTest, WhatIsNoCoordinatorIsQuoted) {
  const ScriptedGenerationService service(
      {.status = {grpc::StatusCode::UNIMPLEMENTED,
                  "Compression algorithm 'gzip' is disabled."}});
  const absl::Status status = GenerateIds(service).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("is no coordinator"), HasSubstr(service.address()),
            HasSubstr("(Compression algorithm 'gzip' is disabled.)")));
}

TEST(GenerationClientTest, EveryFieldOfTheRequestIsSent) {
  const ScriptedGenerationService service(TwoRounds());
  const GenerationRequest request = {
      .prompt = TokenSeq{7, 8},
      .temperature = 0,
      .top_k = 40,
      .top_p = 0.9,
      .seed = 11,
      .max_tokens = 12,
      .stop_strings = {"x", "y"},
      .stop_token_ids = {6, 9},
      .num_speculative_tokens = 0,
      .ignore_eos = true,
      .draft_options = {.support_size = 13,
                        .support_mass = 0.9,
                        .min_draft_probability = 0.5},
      .prompt_lookup = true,
      .reply_format = ReplyFormat::kSparse,
      .cache_salt = "tenant"};
  ASSERT_TRUE(GenerateIds(service, request).ok());
  const v1::GenerateRequest sent = service.last_request();
  EXPECT_THAT(sent.tokens().ids(), ElementsAre(7, 8));
  EXPECT_TRUE(sent.has_temperature());
  EXPECT_EQ(sent.temperature(), 0);
  EXPECT_EQ(sent.top_k(), 40);
  EXPECT_EQ(sent.top_p(), 0.9);
  EXPECT_EQ(sent.seed(), 11);
  EXPECT_EQ(sent.max_tokens(), 12);
  EXPECT_THAT(sent.stop_strings(), ElementsAre("x", "y"));
  EXPECT_THAT(sent.stop_token_ids(), ElementsAre(6, 9));
  EXPECT_TRUE(sent.has_num_speculative_tokens());
  EXPECT_EQ(sent.num_speculative_tokens(), 0);
  EXPECT_TRUE(sent.ignore_eos());
  EXPECT_EQ(sent.draft_options().support_size(), 13);
  EXPECT_EQ(sent.draft_options().min_draft_probability(), 0.5);
  EXPECT_TRUE(sent.prompt_lookup());
  EXPECT_EQ(sent.draft_options().support_mass(), 0.9);
  EXPECT_EQ(sent.reply_format(), v1::REPLY_FORMAT_SPARSE);
  EXPECT_EQ(sent.cache_salt(), "tenant");
  EXPECT_FALSE(sent.has_delivered());
}

TEST(GenerationClientTest, ProcessingIsSent) {
  const ScriptedGenerationService service(TwoRounds());
  GenerationRequest request = {.prompt = TokenSeq{7, 8}};
  request.min_p = 0.1;
  request.repetition_penalty = 1.2;
  request.presence_penalty = -0.3;
  request.frequency_penalty = 0.4;
  request.logit_bias = {{9, -5}, {3, 2.5}};
  request.logprobs = 0;
  request.logprobs_mode = LogprobsMode::kProcessed;
  request.lossy_lenience = 0.5;
  ASSERT_TRUE(GenerateIds(service, request).ok());
  const v1::GenerateRequest sent = service.last_request();
  EXPECT_EQ(sent.min_p(), 0.1);
  EXPECT_EQ(sent.repetition_penalty(), 1.2);
  EXPECT_EQ(sent.presence_penalty(), -0.3);
  EXPECT_EQ(sent.frequency_penalty(), 0.4);
  ASSERT_EQ(sent.logit_bias_size(), 2);
  EXPECT_EQ(sent.logit_bias(1).id(), 3);
  EXPECT_EQ(sent.logit_bias(1).bias(), 2.5);
  EXPECT_TRUE(sent.has_logprobs());
  EXPECT_EQ(sent.logprobs(), 0);
  EXPECT_EQ(sent.logprobs_mode(), v1::LOGPROBS_MODE_PROCESSED);
  EXPECT_EQ(sent.lossy_lenience(), 0.5);
}

TEST(GenerationClientTest, LogprobsComeWithTheirTokens) {
  GenerationUpdate update = TokensUpdate(0, {kBonus, kBonus});
  update.tokens[0].logprob = -0.5;
  update.tokens[0].top_logprobs = {{4, -0.25}, {0, -0.5}};
  const ScriptedGenerationService service(
      {.updates = {StartUpdate(), update, FinishUpdate()}});
  GenerationClient client(service.address());
  const auto stream = client.Generate({}, seconds(20));
  ASSERT_TRUE(stream->Next().ok());
  const auto got = stream->Next();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)->tokens[0].logprob, -0.5);
  EXPECT_EQ((*got)->tokens[0].top_logprobs, update.tokens[0].top_logprobs);
  EXPECT_FALSE((*got)->tokens[1].logprob.has_value());
}

TEST(GenerationClientTest, WhatIsAbsentStaysAbsent) {
  const ScriptedGenerationService service(TwoRounds());
  ASSERT_TRUE(GenerateIds(service, {.prompt = "text"}).ok());
  const v1::GenerateRequest sent = service.last_request();
  EXPECT_EQ(sent.text(), "text");
  EXPECT_FALSE(sent.has_temperature());
  EXPECT_FALSE(sent.has_seed());
  EXPECT_FALSE(sent.has_max_tokens());
  EXPECT_FALSE(sent.has_num_speculative_tokens());
  EXPECT_FALSE(sent.has_min_p());
  EXPECT_FALSE(sent.has_repetition_penalty());
  EXPECT_FALSE(sent.has_logprobs());
  EXPECT_FALSE(sent.has_lossy_lenience());
}

TEST(GenerationClientTest,
     AResumeAsksWithSeedModelAndTokensAndGoesOnAfterThem) {
  ScriptedGenerationService broken(
      {.updates = {StartUpdate(), TokensUpdate(0, {kDraft, kBonus})},
       .status = {grpc::StatusCode::UNAVAILABLE, "gone"}});
  GenerationClient client(broken.address());
  const auto stream = client.Generate({.prompt = "text"}, seconds(20));
  EXPECT_TRUE(absl::IsUnavailable(ReadIds(*stream).status()));

  const ScriptedGenerationService healthy(
      {.updates = {StartUpdate(), TokensUpdate(1, {kDraft, kBonus}),
                   FinishUpdate()}});
  const auto ids = GenerateIds(healthy, stream->ResumeRequest());
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_THAT(*ids, ElementsAre(2));  // 0 and 1 are known
  const v1::GenerateRequest sent = healthy.last_request();
  EXPECT_EQ(sent.text(), "text");
  EXPECT_EQ(sent.seed(), ~uint64_t{2});
  EXPECT_EQ(sent.num_speculative_tokens(), 2);
  EXPECT_THAT(sent.delivered().ids(), ElementsAre(0, 1));
  EXPECT_EQ(sent.model().weights_hash(), "0123abcd");
  EXPECT_EQ(sent.model().dtype(), "float32");
  EXPECT_EQ(sent.model().numerics(), "avx2");
  EXPECT_EQ(sent.cache_salt(), "secret");
}

TEST(GenerationClientTest, AResumeLeavesKToTheCoordinatorWhereTheStreamDid) {
  GenerationUpdate start = StartUpdate();
  start.start->is_k_auto = true;
  const ScriptedGenerationService service(
      {.updates = {start, TokensUpdate(0, {kDraft, kBonus}), FinishUpdate()}});
  GenerationClient client(service.address());
  const auto stream = client.Generate({.prompt = "text"}, seconds(20));
  ASSERT_TRUE(ReadIds(*stream).ok());
  EXPECT_TRUE(stream->ResumeRequest().is_k_auto);
  EXPECT_FALSE(stream->ResumeRequest().num_speculative_tokens.has_value());
}

TEST(GenerationClientTest, CancelEndsAStreamThatIsSilent) {
  ScriptedGenerationService service(
      {.updates = {StartUpdate()}, .waits_for_cancel = true});
  GenerationClient client(service.address());
  const auto stream = client.Generate({}, seconds(20));
  ASSERT_TRUE(stream->Next().ok());
  std::jthread canceller([&stream] { stream->Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(stream->Next().status()));
}

TEST(GenerationClientTest, DestroyingAStreamCancelsIt) {
  ScriptedGenerationService service(
      {.updates = {StartUpdate()}, .waits_for_cancel = true});
  GenerationClient client(service.address());
  auto stream = client.Generate({}, seconds(20));
  ASSERT_TRUE(stream->Next().ok());
  stream.reset();  // or this test would take 20 seconds
}

TEST(GenerationClientTest, TheTimeoutIsForTheWholeStream) {
  const ScriptedGenerationService service(
      {.updates = {StartUpdate()}, .waits_for_cancel = true});
  GenerationClient client(service.address());
  const auto stream = client.Generate({}, std::chrono::milliseconds(50));
  const absl::Status status = ReadIds(*stream).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(GenerationClientTest, AnAddressWithoutACoordinatorIsNamed) {
  GenerationClient client("127.0.0.1:1");
  const absl::Status status =
      ReadIds(*client.Generate({}, seconds(20))).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1:1"));
}

TEST(GenerationClientTest, DescribeTellsThePair) {
  const ScriptedGenerationService service({});
  const auto deployment =
      GenerationClient(service.address()).Describe(seconds(20));
  ASSERT_TRUE(deployment.ok()) << deployment.status();
  ASSERT_EQ(deployment->verifiers.size(), 1);
  EXPECT_EQ(deployment->verifiers[0].model_name, "demo-target");
  EXPECT_THAT(deployment->drafters, IsEmpty());
  EXPECT_THAT(deployment->refused_drafters, ElementsAre("another tokenizer"));
  EXPECT_FALSE(deployment->has_tokenizer);
}

}  // namespace
}  // namespace outrider::client
