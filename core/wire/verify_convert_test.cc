// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/testing/status_matchers.h"
#include "core/wire/convert.h"
#include "core/wire/packing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

VerifyCall TokensCall() {
  return {.header = {.session = {.bytes = {1}},
                     .step = 3,
                     .delta = {.append_tokens = {4}}},
          .draft_tokens = {7},
          .reply_format = ReplyFormat::kTokens,
          .sampling = {.temperature = 0},
          .logprobs =
              LogprobsOptions{.num_top = 2, .mode = LogprobsMode::kProcessed}};
}

VerifyReply TokensReply(std::vector<RowScores> scores) {
  return {.header = {.session = {.bytes = {1}},
                     .incarnation = {.bytes = {2}},
                     .step = 3},
          .outcome = Verdict{1, 5, /*lost_residual=*/true},
          .logprobs = std::move(scores)};
}

absl::StatusOr<VerifyReply> ThroughTheWire(const VerifyReply& reply) {
  v1::VerifyResponse response;
  ToProto(reply, response);
  return FromProto(std::move(response), TokensCall());
}

TEST(VerifyConvertTest, AVerdictArrivesAsItWasSent) {
  const auto reply = ThroughTheWire(TokensReply({}));
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(std::get<Verdict>(reply->outcome),
            std::get<Verdict>(TokensReply({}).outcome));
}

TEST(VerifyConvertTest, WhatTheVerifierMayGoOnWithArrivesAsItWasSent) {
  VerifyCall call = TokensCall();
  call.draft_tokens.clear();
  call.max_more_tokens = 7;
  call.end_tokens = {2, 9};
  const auto asked = FromProto(ToProto(call));
  ASSERT_THAT(asked, IsOk());
  EXPECT_EQ(asked->max_more_tokens, 7);
  EXPECT_THAT(asked->end_tokens, ElementsAre(2, 9));
  VerifyReply reply = TokensReply({});
  reply.more_tokens = {3, 1};
  const auto answered = ThroughTheWire(reply);
  ASSERT_THAT(answered, IsOk());
  EXPECT_THAT(answered->more_tokens, ElementsAre(3, 1));
}

TEST(VerifyConvertTest, LogprobsAreAskedForAsTheyWere) {
  const auto call = FromProto(ToProto(TokensCall()));
  ASSERT_THAT(call, IsOk());
  EXPECT_EQ(call->logprobs, TokensCall().logprobs);
  VerifyCall silent = TokensCall();
  silent.logprobs.reset();
  EXPECT_FALSE(ToProto(silent).has_logprobs());
  EXPECT_FALSE(FromProto(ToProto(silent))->logprobs.has_value());
}

TEST(VerifyConvertTest, SamplingIsRequiredWhereTheVerifierProcessesRows) {
  for (const ReplyFormat format : kReplyFormats) {
    VerifyCall call = TokensCall();
    call.reply_format = format;
    v1::VerifyRequest request = ToProto(call);
    EXPECT_THAT(FromProto(request), IsOk());
    request.clear_sampling();
    if (format == ReplyFormat::kFull || format == ReplyFormat::kFullBFloat16) {
      EXPECT_THAT(FromProto(request), IsOk());
    } else {
      EXPECT_THAT(FromProto(request),
                  StatusIs(kInvalidArgument, HasSubstr("sampling is absent")));
    }
  }
}

TEST(VerifyConvertTest, TooManyAlternativesAreRefused) {
  v1::VerifyRequest request = ToProto(TokensCall());
  for (const uint32_t num_top : {21u, ~0u}) {
    request.mutable_logprobs()->set_num_top(num_top);
    EXPECT_THAT(FromProto(request), StatusIs(kInvalidArgument));
  }
}

TEST(VerifyConvertTest, ScoresLoseNothingOnTheWire) {
  const std::vector<RowScores> logits = {
      {.log_normaliser = 3.25 + 1e-15,
       .tokens = {double{0.1f}, -kInfinity},
       .top_ids = {9, 2},
       .top_scores = {double{1e30f}, double{0.3f}}},
      {.log_normaliser = 1, .tokens = {2.5}}};
  const std::vector<RowScores> logarithms = {
      {.tokens = {std::log(0.1)}, .top_ids = {1}, .top_scores = {0}}, {}};
  for (const auto& scores : {logits, logarithms, std::vector<RowScores>()}) {
    const auto reply = ThroughTheWire(TokensReply(scores));
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(reply->logprobs, scores);
  }
}

// 4 bytes for each id of the support that may replace a draft.
TEST(VerifyConvertTest, TheScoresOfARoundAreLessThanAKilobyte) {
  constexpr int kRows = 6;
  constexpr int kSupport = 32;
  VerifyReply reply = TokensReply({});
  v1::VerifyResponse bare;
  ToProto(reply, bare);
  for (int i = 0; i < kRows; ++i) {
    const int num_tokens = i + 1 < kRows ? kSupport + 1 : 1;
    reply.logprobs.push_back(
        {.log_normaliser = 12.3456789,
         .tokens = std::vector<double>(num_tokens, double{0.1f})});
  }
  v1::VerifyResponse scored;
  ToProto(reply, scored);
  EXPECT_LE(scored.ByteSizeLong() - bare.ByteSizeLong(), 800u);
}

TEST(VerifyConvertTest, RowsOfBFloat16TakeTwoBytesALogitAndLoseNothing) {
  VerifyCall call = TokensCall();
  call.reply_format = ReplyFormat::kFullBFloat16;
  const VerifyReply reply = {
      .outcome = LogitRows::FromVector({1, -3.140625, 0.5, 0, 2, 2}, 3),
      .is_bfloat16 = true};
  v1::VerifyResponse response;
  ToProto(reply, response);
  EXPECT_EQ(response.full().logits().size(), 12u);
  const auto back = FromProto(response, call);
  ASSERT_THAT(back, IsOk());
  const LogitRows& rows = std::get<LogitRows>(back->outcome);
  EXPECT_THAT(rows.Row(0), ElementsAre(1, -3.140625, 0.5));
  EXPECT_THAT(rows.Row(1), ElementsAre(0, 2, 2));
  EXPECT_TRUE(back->is_bfloat16);
  response.mutable_full()->set_num_rows(3);
  EXPECT_THAT(
      FromProto(response, call),
      StatusIs(kInvalidArgument, HasSubstr("3 rows of 3 numbers of 2")));
}

TEST(VerifyConvertTest, MalformedScoresAreRefused) {
  const double nan = std::nan("");
  const std::vector<std::pair<RowScores, std::string>> cases = {
      {{.tokens = {nan}}, "nan"},
      {{.tokens = {kInfinity}}, "inf"},
      {{.top_ids = {1}, .top_scores = {nan}}, "nan"},
      {{.log_normaliser = kInfinity, .tokens = {1}}, "normaliser inf"},
      {{.log_normaliser = nan}, "normaliser nan"},
      {{.top_ids = {1, 2}, .top_scores = {1}}, "1 scores for 2 tokens"}};
  for (const auto& [scores, words] : cases) {
    EXPECT_THAT(ThroughTheWire(TokensReply({scores})),
                StatusIs(kInvalidArgument, HasSubstr(words)));
  }
  v1::VerifyResponse response;
  ToProto(TokensReply({{.tokens = {1}}}), response);
  response.mutable_logprobs(0)->set_scores("odd");
  EXPECT_THAT(FromProto(response, TokensCall()),
              StatusIs(kInvalidArgument, HasSubstr("3 bytes")));
  response.mutable_logprobs(0)->set_dtype(v1::DTYPE_BFLOAT16);
  EXPECT_THAT(FromProto(response, TokensCall()),
              StatusIs(kInvalidArgument, HasSubstr("dtype")));
}

}  // namespace
}  // namespace outrider
