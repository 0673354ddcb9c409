// SPDX-License-Identifier: Apache-2.0
#include "client/generation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/scripted_generation_service.h"

namespace outrider::client {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

// The two rounds, arriving 100 and 150 ms after the call.
GenerationReport TwoRoundsReport() {
  const auto script = TwoRounds();
  GenerationReport report;
  report.Add(script.updates[0], milliseconds(1));
  report.Add(script.updates[1], milliseconds(100));
  report.Add(script.updates[2], milliseconds(150));
  report.Add(script.updates[3], milliseconds(151));
  return report;
}

TEST(GenerationReportTest, TokensOfTheFirstMessageAreNoDecodingSpeed) {
  // One token in the 50 ms after the first message, which brought three.
  EXPECT_DOUBLE_EQ(DecodeTokensPerSecond(TwoRoundsReport()), 20);
}

TEST(GenerationReportTest, ASingleMessageHasNoDecodingSpeed) {
  GenerationReport report;
  report.Add(TwoRounds().updates[1], milliseconds(100));
  EXPECT_EQ(DecodeTokensPerSecond(report), 0);
}

TEST(GenerationReportTest, TheJsonObjectHasEveryField) {
  const auto json =
      nlohmann::json::parse(ToJson(TwoRoundsReport(), {.with_rounds = true}));
  EXPECT_EQ(json["token_ids"], nlohmann::json({0, 1, 2, 3}));
  EXPECT_EQ(json["text"], "abcd!");
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["seed"], "18446744073709551613");  // all digits survive
  EXPECT_EQ(json["model"], "0123abcd:float32:avx2");
  EXPECT_EQ(json["prompt_length"], 5);
  EXPECT_EQ(json["cached_prompt_tokens"], 4);
  EXPECT_EQ(json["num_speculative_tokens"], 2);
  EXPECT_EQ(json["lossy"], false);
  EXPECT_EQ(json["num_draft_failures"], 3);
  EXPECT_EQ(json["num_misses"], 1);
  EXPECT_EQ(json["rounds"][0], nlohmann::json({{"drafted", 2},
                                               {"accepted", 2},
                                               {"more", 0},
                                               {"looked_up", 0},
                                               {"ahead", "none"},
                                               {"drafted_ahead", 0},
                                               {"draft_ms", 10.0},
                                               {"verify_ms", 20.0},
                                               {"draft_compute_ms", 9.0},
                                               {"verify_compute_ms", 18.0},
                                               {"round_ms", 40.0},
                                               {"drafter_bytes", 100},
                                               {"verifier_bytes", 1900},
                                               {"drafter_messages", 2},
                                               {"verifier_messages", 2}}));
  EXPECT_EQ(json["totals"], nlohmann::json({{"tokens", 4},
                                            {"rounds", 2},
                                            {"drafted", 4},
                                            {"accepted", 2},
                                            {"looked_up", 0},
                                            {"ahead_hits", 0},
                                            {"ahead_misses", 0},
                                            {"drafted_ahead", 0},
                                            {"acceptance", 0.5},
                                            {"tokens_per_round", 2.0},
                                            {"draft_ms", 12.0},
                                            {"verify_ms", 25.0},
                                            {"draft_compute_ms", 10.0},
                                            {"verify_compute_ms", 22.0},
                                            {"round_ms", 50.0},
                                            {"drafter_bytes", 200},
                                            {"verifier_bytes", 3800},
                                            {"drafter_messages", 4},
                                            {"verifier_messages", 4},
                                            {"bytes_per_token", 1000.0}}));
  EXPECT_EQ(json["timings"],
            nlohmann::json({{"time_to_first_token_ms", 100.0},
                            {"total_ms", 150.0},
                            {"decode_tokens_per_second", 20.0}}));
}

TEST(GenerationReportTest, WhatWasCachedIsNullWhereTheStartDoesNotSay) {
  EXPECT_TRUE(
      nlohmann::json::parse(ToJson(GenerationReport()))["cached_prompt_tokens"]
          .is_null());
}

TEST(GenerationReportTest, JsonHasLogprobsWhereTheTokensHaveThem) {
  GenerationReport report;
  report.Add({.tokens = {{.id = 1,
                          .logprob = -0.5,
                          .top_logprobs = {{4, -0.25}, {1, -0.5}}}}},
             milliseconds(1));
  EXPECT_EQ(
      nlohmann::json::parse(ToJson(report))["logprobs"],
      nlohmann::json::parse(
          R"([{"id": 1, "logprob": -0.5, "top": [)"
          R"({"id": 4, "logprob": -0.25}, {"id": 1, "logprob": -0.5}]}])"));
  EXPECT_FALSE(
      nlohmann::json::parse(ToJson(TwoRoundsReport())).contains("logprobs"));
}

TEST(GenerationReportTest, TextThatIsNotUtf8StillMakesJson) {
  GenerationReport report;
  report.Add({.tokens = {{.id = 1, .text = "a\xff"}}}, milliseconds(1));
  EXPECT_EQ(nlohmann::json::parse(ToJson(report))["text"], "a\xef\xbf\xbd");
}

TEST(GenerationReportTest, AGenerationWithoutFinishIsCancelled) {
  EXPECT_EQ(nlohmann::json::parse(ToJson(GenerationReport()))["finish_reason"],
            "cancelled");
}

TEST(GenerationReportTest, TheSummaryCountsRoundsAfterThePrompt) {
  EXPECT_EQ(ToSummary(TwoRoundsReport()),
            "4 tokens in 0.15 s, up to the length limit; the first after 100 "
            "ms, then 20.0 tokens/s\n"
            "K = 2: 2 of 4 drafts accepted (50 %), 2.00 tokens a round\n"
            "per token: drafter 0.05 kB, 1.00 messages; verifier 0.95 kB, 1.00 "
            "messages\n"
            "a round takes 10.0 ms: draft 2.0 ms (20 %), verify 5.0 ms (50 %), "
            "rest 3.0 ms (30 %)\n"
            "4 tokens of the prompt were cached from before\n"
            "drafts that failed and became plain decoding: 3\n"
            "caches that a node had lost and was sent again: 1\n");
}

TEST(GenerationReportTest, ALossyGenerationIsCalledSo) {
  GenerationReport report = TwoRoundsReport();
  EXPECT_THAT(ToSummary(report), Not(HasSubstr("lossy")));
  report.start->is_lossy = true;
  EXPECT_THAT(ToSummary(report), HasSubstr("lossy (--lossy-lenience)"));
  EXPECT_EQ(nlohmann::json::parse(ToJson(report))["lossy"], true);
}

TEST(GenerationReportTest, TheSummaryOfNothingDividesByNothing) {
  EXPECT_THAT(ToSummary({}), HasSubstr("0 tokens in 0.00 s, cut short"));
}

}  // namespace
}  // namespace outrider::client
