// SPDX-License-Identifier: Apache-2.0
#include "core/wire/read_reply.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/special_values.h"
#include "core/testing/status_matchers.h"
#include "core/wire/convert.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int kFewTokens = 3;

VerifyCall CallIn(ReplyFormat format) {
  VerifyCall call = {.header = {.session = {{1}}, .step = 3},
                     .draft_tokens = {1},
                     .reply_format = format};
  if (format == ReplyFormat::kSparse) call.supports = {{1, 2}};
  return call;
}

// What a verifier says to these, and whatever it says of scores.
VerifyReply ReplyIn(ReplyFormat format) {
  VerifyReply reply = {.header = {.session = {{1}}, .step = 3}};
  switch (format) {
    case ReplyFormat::kFull:
    case ReplyFormat::kFullBFloat16:
      reply.outcome = LogitRows::FromVector({0, 1, 2, 2, 1, 0}, kFewTokens);
      reply.is_bfloat16 = format == ReplyFormat::kFullBFloat16;
      break;
    case ReplyFormat::kSparse:
      reply.outcome =
          std::vector<TargetRow>{*TargetRow::FromParts({1, 2}, {0.5, 0.25},
                                                       /*tail_mass=*/0.25, 0),
                                 *TargetRow::FromParts({}, {}, 1, 2)};
      break;
    case ReplyFormat::kTokens:
      reply.outcome = Verdict{1, 2};
      break;
  }
  return reply;
}

absl::Status ReadOf(const VerifyReply& reply, const VerifyCall& call) {
  v1::VerifyResponse response;
  ToProto(reply, response);
  return ReadReply(std::move(response), call, kFewTokens).status();
}

TEST(ReadReplyTest, EachFormatIsReadWhereItWasAskedForAndNoOther) {
  for (const ReplyFormat sent : kReplyFormats) {
    for (const ReplyFormat asked : kReplyFormats) {
      VerifyCall call = CallIn(asked);
      if (sent == ReplyFormat::kSparse) call.supports = {{1, 2}};
      const absl::Status status = ReadOf(ReplyIn(sent), call);
      if (sent == asked) {
        EXPECT_THAT(status, IsOk());
      } else {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                                     HasSubstr("another format")));
      }
    }
  }
}

TEST(ReadReplyTest, AMissFitsEveryCall) {
  for (const ReplyFormat format : kReplyFormats) {
    VerifyReply miss = ReplyIn(format);
    miss.outcome = Miss{.reason = MissReason::kLength};
    EXPECT_THAT(ReadOf(miss, CallIn(format)), IsOk());
  }
}

TEST(ReadReplyTest, AMalformedReplyIsTheVerifiersFailure) {
  EXPECT_THAT(
      ReadReply(v1::VerifyResponse(), CallIn(ReplyFormat::kFull), kFewTokens),
      StatusIs(absl::StatusCode::kInternal,
               HasSubstr("the verifier sent a malformed reply")));
}

TEST(ReadReplyTest, AReplyThatDoesNotFitTheCallIsTheVerifiersFailure) {
  struct Case {
    ReplyFormat format;
    std::function<void(VerifyReply&)> change;
    std::string message;
  };
  using enum ReplyFormat;
  const std::vector<Case> cases = {
      {kFull,
       [](auto& reply) {
         reply.outcome = LogitRows::FromVector({0, 1, 2}, kFewTokens);
       },
       "1 rows for 1 drafts"},
      {kFull,
       [](auto& reply) {
         reply.outcome = LogitRows::FromVector({0, 1, 2, 3}, 2);
       },
       "rows of 2 tokens"},
      {kFullBFloat16,
       [](auto& reply) {
         reply.outcome =
             LogitRows::FromVector({0, 1, 2, 2, testing::kNan, 0}, kFewTokens);
       },
       ""},
      {kSparse,
       [](auto& reply) {
         reply.outcome =
             std::vector<TargetRow>{*TargetRow::FromParts({1, 2}, {0.5, 0.5},
                                                          /*tail_mass=*/0, {}),
                                    *TargetRow::FromParts({}, {}, 1, 3)};
       },
       "sent token 3"},
      {kTokens,
       [](auto& reply) {
         reply.outcome = Verdict{2, 0};
       },
       "accepted 2 of 1"},
      {kTokens,
       [](auto& reply) {
         reply.outcome = Verdict{1, 3};
       },
       "sent token 3"},
      {kTokens, [](auto& reply) { reply.more_tokens = {1}; }, "went on with 1"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.message);
    VerifyReply reply = ReplyIn(one.format);
    one.change(reply);
    EXPECT_THAT(ReadOf(reply, CallIn(one.format)),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(one.message)));
  }
}

TEST(ReadReplyTest, ScoresThatDoNotFitTheRowsAreTheVerifiersFailure) {
  for (const ReplyFormat format :
       {ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    VerifyCall call = CallIn(format);
    call.logprobs = LogprobsOptions{.num_top = 1};
    VerifyReply reply = ReplyIn(format);
    reply.logprobs = {{.tokens = {1}}, {.tokens = {1}}};
    if (format == ReplyFormat::kSparse) reply.logprobs[0].tokens = {1, 2, 3};
    EXPECT_THAT(ReadOf(reply, call), IsOk());
    reply.logprobs.pop_back();
    EXPECT_THAT(ReadOf(reply, call),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("do not fit")));
  }
}

TEST(ReadReplyTest, AMalformedDraftIsTheDraftersFailure) {
  v1::DraftResponse response;
  response.mutable_result()->add_tokens(kFewTokens - 1);
  EXPECT_THAT(ReadReply(response, DraftCall(), kFewTokens).status(), IsOk());
  response.mutable_result()->add_tokens(kFewTokens);
  EXPECT_THAT(ReadReply(response, DraftCall(), kFewTokens).status(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("the drafter sent a malformed reply")));
}

}  // namespace
}  // namespace outrider
