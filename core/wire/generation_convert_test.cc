// SPDX-License-Identifier: Apache-2.0
#include "core/wire/generation_convert.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

GenerationUpdate ThereAndBack(const GenerationUpdate& update) {
  return FromProto(ToProto(update));
}

TEST(GenerationConvertTest, AStartArrivesAsItWasSent) {
  const GenerationStart sent = {
      .seed = ~uint64_t{2},
      .prompt_length = 5,
      .num_speculative_tokens = 3,
      .is_k_auto = true,
      .is_lossy = true,
      .model = {.weights_hash = "0123", .dtype = "float32", .numerics = "avx2"},
      .cache_salt = "secret",
      .num_cached_prompt_tokens = 4};
  const GenerationUpdate got = ThereAndBack({.start = sent, .first_index = 2});
  ASSERT_TRUE(got.start.has_value());
  EXPECT_EQ(got.first_index, 2);
  EXPECT_EQ(got.start->seed, sent.seed);
  EXPECT_EQ(got.start->prompt_length, sent.prompt_length);
  EXPECT_EQ(got.start->num_speculative_tokens, sent.num_speculative_tokens);
  EXPECT_TRUE(got.start->is_k_auto);
  EXPECT_TRUE(got.start->is_lossy);
  EXPECT_EQ(got.start->model, sent.model);
  EXPECT_EQ(got.start->cache_salt, sent.cache_salt);
  EXPECT_EQ(got.start->num_cached_prompt_tokens, 4);
  EXPECT_EQ(ThereAndBack({.start = GenerationStart()})
                .start->num_cached_prompt_tokens,
            std::nullopt);
  EXPECT_FALSE(got.round.has_value());
  EXPECT_FALSE(got.finish.has_value());
}

TEST(GenerationConvertTest, TokensArriveAsTheyWereSent) {
  const std::vector<GeneratedToken> sent = {
      {.id = 7,
       .text = "a",
       .origin = TokenOrigin::kDraft,
       .logprob = -0.5,
       .top_logprobs = {{7, -0.5}, {9, -1.25}}},
      {.id = 8, .origin = TokenOrigin::kReplacement},
      {.id = 9, .origin = TokenOrigin::kBonus},
      {.id = 10, .origin = TokenOrigin::kUnknown}};
  const std::vector<GeneratedToken> got = ThereAndBack({.tokens = sent}).tokens;
  ASSERT_EQ(got.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(got[i].id, sent[i].id);
    EXPECT_EQ(got[i].text, sent[i].text);
    EXPECT_EQ(got[i].origin, sent[i].origin);
    EXPECT_EQ(got[i].logprob, sent[i].logprob);
    EXPECT_EQ(got[i].top_logprobs, sent[i].top_logprobs);
  }
}

TEST(GenerationConvertTest, ARoundArrivesButForWhatCallersAreNotTold) {
  const RoundStats sent = {.num_drafted = 4,
                           .num_accepted = 3,
                           .num_more = 5,
                           .num_looked_up = 2,
                           .ahead = {.outcome = AheadStats::Outcome::kHit,
                                     .num_drafted = 20,
                                     .longest = 4},
                           .round_seconds = 1.5,
                           .drafter = {.call_seconds = 0.25,
                                       .compute_seconds = 0.125,
                                       .wire_bytes = int64_t{5} << 32,
                                       .num_messages = 6},
                           .verifier = {.call_seconds = 0.029,
                                        .compute_seconds = 0.0625,
                                        .wire_bytes = 8,
                                        .num_messages = 9,
                                        .misses = {10}}};
  const auto got = ThereAndBack({.round = sent}).round;
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->num_drafted, 4);
  EXPECT_EQ(got->num_accepted, 3);
  EXPECT_EQ(got->num_more, 5);
  EXPECT_EQ(got->num_looked_up, 2);
  EXPECT_EQ(got->ahead.outcome, AheadStats::Outcome::kHit);
  EXPECT_EQ(got->ahead.num_drafted, 20);
  EXPECT_EQ(got->ahead.longest, 0);
  EXPECT_EQ(got->round_seconds, 1.5);
  EXPECT_EQ(got->drafter.call_seconds, 0.25);
  EXPECT_EQ(got->drafter.compute_seconds, 0.125);
  EXPECT_EQ(got->drafter.wire_bytes, int64_t{5} << 32);
  EXPECT_EQ(got->drafter.num_messages, 6);
  EXPECT_EQ(got->verifier.call_seconds, 0.029);
  EXPECT_EQ(got->verifier.compute_seconds, 0.0625);
  EXPECT_EQ(got->verifier.wire_bytes, 8);
  EXPECT_EQ(got->verifier.num_messages, 9);
  EXPECT_EQ(got->verifier.num_misses(), 0);
}

TEST(GenerationConvertTest, AFinishArrivesAsItWasSent) {
  for (const FinishReason reason :
       {FinishReason::kEos, FinishReason::kStop, FinishReason::kLength}) {
    const auto got =
        ThereAndBack({.finish = GenerationFinish{.reason = reason,
                                                 .trailing_text = "!",
                                                 .num_draft_failures = 3,
                                                 .num_misses = 1}})
            .finish;
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->reason, reason);
    EXPECT_EQ(got->trailing_text, "!");
    EXPECT_EQ(got->num_draft_failures, 3);
    EXPECT_EQ(got->num_misses, 1);
  }
}

TEST(GenerationConvertTest, ASchedulesNumberIsItsOwn) {
  for (const auto& [name, schedule] : ScheduleNames()) {
    const auto got = FromProto(ToProto(schedule));
    ASSERT_TRUE(got.ok()) << name;
    EXPECT_EQ(*got, schedule) << name;
  }
  const auto absent = FromProto(v1::SCHEDULE_UNSPECIFIED);
  ASSERT_TRUE(absent.ok());
  EXPECT_FALSE(absent->has_value());
  EXPECT_EQ(FromProto(static_cast<v1::Schedule>(99)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(GenerationConvertTest, WordsOfANewerCoordinatorAreUnknown) {
  v1::GenerateResponse proto;
  proto.add_tokens()->set_origin(static_cast<v1::TokenOrigin>(99));
  proto.mutable_finish()->set_reason(static_cast<v1::FinishReason>(99));
  proto.set_first_index(~uint32_t{0});
  const GenerationUpdate got = FromProto(proto);
  EXPECT_EQ(got.tokens.at(0).origin, TokenOrigin::kUnknown);
  EXPECT_EQ(got.finish->reason, FinishReason::kUnknown);
  EXPECT_GT(got.first_index, 0);
}

}  // namespace
}  // namespace outrider
