// SPDX-License-Identifier: Apache-2.0
#include "client/resuming_stream.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/scripted_generation_service.h"
#include "core/base/retry_delay.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/status_convert.h"
#include "core/testing/silent_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::client {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::SizeIs;

using Script = ScriptedGenerationService::Script;

const grpc::Status kGone(grpc::StatusCode::UNAVAILABLE, "gone");

// What one stream gave.
struct Result {
  absl::Status status;
  std::vector<TokenId> tokens;
  int num_starts = 0;
};

constexpr milliseconds kLongestSearch(1200);

Result Read(const std::vector<std::string>& coordinators,
            std::chrono::seconds timeout = std::chrono::seconds(20)) {
  ResumingStream stream({.prompt = "prompt"},
                        {.coordinators = coordinators,
                         .timeout = timeout,
                         .longest_search = kLongestSearch});
  Result result;
  while (true) {
    const auto update = stream.Next();
    result.status = update.status();
    if (!update.ok() || !update->has_value()) break;
    result.num_starts += (*update)->start.has_value() ? 1 : 0;
    for (const auto& token : (*update)->tokens) {
      result.tokens.push_back(token.id);
    }
  }
  return result;
}

Script BreaksAfterItsFirstRound() {
  Script script = TwoRounds();
  script.updates.resize(2);
  script.status = kGone;
  return script;
}

TEST(ResumingStreamTest, AStreamThatBreaksGoesOnAtTheNextCoordinator) {
  const ScriptedGenerationService first(BreaksAfterItsFirstRound());
  Script rest = TwoRounds();
  rest.updates[0].first_index = 3;
  rest.updates.erase(rest.updates.begin() + 1);
  const ScriptedGenerationService second(rest);
  const Result result = Read({first.address(), second.address()});
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(result.tokens, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(result.num_starts, 1);
  ASSERT_EQ(second.requests().size(), 1u);
  const v1::GenerateRequest request = second.last_request();
  EXPECT_EQ(request.seed(), StartUpdate().start->seed);
  EXPECT_THAT(request.delivered().ids(), ElementsAre(0, 1, 2));
}

// The timeout is less than the patience with one that is alone.
TEST(ResumingStreamTest, ACoordinatorThatSaysNothingIsLeftWhereThereAreOthers) {
  const outrider::testing::SilentServer first;
  const ScriptedGenerationService second(TwoRounds());
  const Result result =
      Read({first.address(), second.address()}, std::chrono::seconds(6));
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(result.tokens, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(second.requests().size(), 1u);
}

// A name may stand for others: what it stood for is left as soon.
TEST(ResumingStreamTest, ANameThatMayStandForSeveralIsNotWaitedForEither) {
  const outrider::testing::SilentServer only;
  const Result result =
      Read({absl::StrCat("localhost:", PortOf(only.address()))},
           std::chrono::seconds(6));
  EXPECT_TRUE(absl::IsUnavailable(result.status)) << result.status;
}

TEST(ResumingStreamTest, OneThatHasNotBegunIsSentAsItWas) {
  const ScriptedGenerationService first(Script{.status = kGone});
  const ScriptedGenerationService second(TwoRounds());
  const Result result = Read({first.address(), second.address()});
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(result.tokens, ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(second.last_request().has_seed());
}

TEST(ResumingStreamTest, WhatAServerCancelsAsItShutsDownGoesElsewhere) {
  const ScriptedGenerationService first(
      Script{.status = {grpc::StatusCode::CANCELLED, "CANCELLED"}});
  const ScriptedGenerationService second(TwoRounds());
  const Result result = Read({first.address(), second.address()});
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(result.tokens, ElementsAre(0, 1, 2, 3));
}

TEST(ResumingStreamTest, ForWhatHasNotBegunEachIsTriedTwiceAndNoMore) {
  const ScriptedGenerationService first(Script{.status = kGone});
  const ScriptedGenerationService second(Script{.status = kGone});
  const Result result = Read({first.address(), second.address()});
  EXPECT_TRUE(absl::IsUnavailable(result.status)) << result.status;
  EXPECT_EQ(first.requests().size(), 2u);
  EXPECT_EQ(second.requests().size(), 2u);
}

// A rolling update takes longer than two tries at each.
TEST(ResumingStreamTest, WhatHasBegunIsTriedUntilNoTokenHasComeForSoLong) {
  const ScriptedGenerationService first(BreaksAfterItsFirstRound());
  const ScriptedGenerationService second(Script{.status = kGone});
  const auto start = std::chrono::steady_clock::now();
  const Result result =
      Read({first.address(), second.address()}, std::chrono::seconds(60));
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, kLongestSearch);
  // Tokens that it has already prolong nothing.
  EXPECT_LT(took, std::chrono::seconds(30));
  EXPECT_TRUE(absl::IsUnavailable(result.status)) << result.status;
  EXPECT_THAT(result.tokens, ElementsAre(0, 1, 2));
  EXPECT_THAT(first.requests(), SizeIs(Ge(3)));
  EXPECT_THAT(second.requests(), SizeIs(Ge(3)));
}

TEST(ResumingStreamTest, TheRetryDelayOfARefusalIsObeyed) {
  const auto delay = milliseconds(900);
  const ScriptedGenerationService first(
      Script{.status = ToGrpcStatus(
                 WithRetryDelay(absl::ResourceExhaustedError("full"), delay))});
  const ScriptedGenerationService second(Script{.status = kGone});
  const auto start = std::chrono::steady_clock::now();
  Read({first.address(), second.address()});
  EXPECT_EQ(first.requests().size(), 2u);
  EXPECT_GE(std::chrono::steady_clock::now() - start, delay);
}

TEST(ResumingStreamTest, ANameThatMayStandForSeveralIsTriedAgain) {
  const ScriptedGenerationService only(BreaksAfterItsFirstRound());
  const Result result =
      Read({absl::StrCat("localhost:", PortOf(only.address()))});
  EXPECT_TRUE(absl::IsUnavailable(result.status)) << result.status;
  ASSERT_THAT(only.requests(), SizeIs(Ge(3)));
  EXPECT_THAT(only.last_request().delivered().ids(), ElementsAre(0, 1, 2));
}

TEST(ResumingStreamTest, WithOneAddressNothingIsTriedAgain) {
  const ScriptedGenerationService only(BreaksAfterItsFirstRound());
  const Result result = Read({only.address()});
  EXPECT_TRUE(absl::IsUnavailable(result.status)) << result.status;
  EXPECT_EQ(only.requests().size(), 1u);
}

// Nobody answers there, and so nothing of the call comes back before its time.
TEST(ResumingStreamTest, CancellingEndsAWaitForAConnectionAtOnce) {
  const outrider::testing::SilentServer only;
  ResumingStream stream(
      {.prompt = "prompt"},
      {.coordinators = {only.address()}, .timeout = std::chrono::seconds(20)});
  const auto start = std::chrono::steady_clock::now();
  std::jthread canceller([&stream] {
    std::this_thread::sleep_for(milliseconds(200));
    stream.Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(stream.Next().status()));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(ResumingStreamTest, WhatIsCancelledBeforeItHasStartedIsOver) {
  const ScriptedGenerationService only(TwoRounds());
  ResumingStream stream(
      {.prompt = "prompt"},
      {.coordinators = {only.address()}, .timeout = std::chrono::seconds(20)});
  stream.Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream.Next().status()));
}

// It may be what two verifiers were lost by.
TEST(ResumingStreamTest, AStreamThatAModelFailedOnIsTriedOnNoOther) {
  Script script = BreaksAfterItsFirstRound();
  script.status = {grpc::StatusCode::INTERNAL, "two verifiers were lost"};
  const ScriptedGenerationService first(script);
  const ScriptedGenerationService second(TwoRounds());
  const Result result = Read({first.address(), second.address()});
  EXPECT_TRUE(absl::IsInternal(result.status)) << result.status;
  EXPECT_TRUE(second.requests().empty());
}

TEST(ResumingStreamTest, ARequestThatIsTooLargeIsTooLargeEverywhere) {
  const ScriptedGenerationService first(
      Script{.status = {grpc::StatusCode::RESOURCE_EXHAUSTED,
                        "Received message larger than max (9 vs. 8)"}});
  const ScriptedGenerationService second(TwoRounds());
  const Result result = Read({first.address(), second.address()});
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status)) << result.status;
  EXPECT_EQ(first.requests().size(), 1u);
  EXPECT_TRUE(second.requests().empty());
}

TEST(ResumingStreamTest, ARequestThatIsWrongIsWrongEverywhere) {
  const ScriptedGenerationService first(
      Script{.status = {grpc::StatusCode::INVALID_ARGUMENT, "wrong"}});
  const ScriptedGenerationService second(TwoRounds());
  const Result result = Read({first.address(), second.address()});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  EXPECT_TRUE(second.requests().empty());
}

}  // namespace
}  // namespace outrider::client
