// SPDX-License-Identifier: Apache-2.0
// Sessions on verifiers that hang and are replaced, in virtual time.
#include "coordinator/nodes/session_verifier.h"

#include <chrono>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/verifier_streams.h"

namespace outrider {
namespace {

using ::outrider::testing::FakeProcess;
using ::outrider::testing::IsOk;
using ::outrider::testing::kFakeStep;
using ::outrider::testing::StatusIs;
using ::outrider::testing::VerifierStreams;
using std::chrono::milliseconds;

class SessionVerifierTest : public VerifierStreams {};

TEST_F(SessionVerifierTest, AVerifierThatFallsSilentIsLeftWithinASecond) {
  Start(/*num_verifiers=*/3, /*num_streams=*/9);
  // Its slowest step would allow it four seconds.
  for (FakeProcess& process : processes_) process.step = milliseconds(500);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.step = kFakeStep;
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].is_silent = true;
  const auto silent_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_LT(loop_.elapsed() - silent_at, std::chrono::seconds(1));
  EXPECT_EQ(NumMoves(MoveReason::kLate), 3);
}

TEST_F(SessionVerifierTest, AVerifierThatOnlyTakesLongIsNotLeft) {
  Start(/*num_verifiers=*/3, /*num_streams=*/9);
  for (FakeProcess& process : processes_) process.step = milliseconds(500);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.step = milliseconds(3000);
  RunUntil([&] { return HaveAllSteps(6); });
  EXPECT_EQ(NumMoves(MoveReason::kLate), 0);
}

// They take turns, so that the first of them ends when the last does.
TEST_F(SessionVerifierTest, TextsThatComeAtOnceAreLateNowhere) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  prompt_.assign(400, 1);
  for (FakeProcess& one : processes_) one.per_token = milliseconds(1);
  for (int i = 0; i < 2; ++i) AddStream();
  RunUntil([&] { return HaveAllSteps(1); });  // so their pace is known
  for (int i = 0; i < 128; ++i) AddStream();
  RunToEnd();
  EXPECT_EQ(processes_[0].num_texts + processes_[1].num_texts, 130);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// It is the coordinator that hears nothing.
TEST_F(SessionVerifierTest, WhereAllAreSilentNobodyMoves) {
  Start(/*num_verifiers=*/3, /*num_streams=*/9);
  for (FakeProcess& process : processes_) process.step = milliseconds(500);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.is_silent = true;
  const auto silent_at = loop_.elapsed();
  RunUntil([&] { return loop_.elapsed() - silent_at > milliseconds(1500); });
  EXPECT_EQ(NumMoves(MoveReason::kLate), 0);
  for (FakeProcess& process : processes_) process.is_silent = false;
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// It holds, and goes there as soon as that one has recovered.
TEST_F(SessionVerifierTest, ASilentVerifierIsLeftThoughTheOtherFailedLately) {
  Start(/*num_verifiers=*/2, /*num_streams=*/4);
  // A late step would be waited for as long as four of these allow.
  for (FakeProcess& process : processes_) process.step = milliseconds(500);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.step = kFakeStep;
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[1].is_silent = true;
  RunUntil([&] { return NumMoves(MoveReason::kLate) == 2; });
  processes_[1].is_silent = false;
  RunUntil([&] { return HaveAllSteps(13); });
  processes_[0].is_silent = true;
  const auto silent_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(16); });
  EXPECT_LT(loop_.elapsed() - silent_at, std::chrono::seconds(6));
  EXPECT_EQ(NumMoves(MoveReason::kLate), 6);
}

TEST_F(SessionVerifierTest, ACoordinatorThatWasStoppedBlamesNobody) {
  Start(/*num_verifiers=*/3, /*num_streams=*/9);
  RunUntil([&] { return HaveAllSteps(10); });
  loop_.StandStill(std::chrono::seconds(20));
  RunToEnd();
  EXPECT_EQ(NumMoves(MoveReason::kLate), 0);
}

TEST_F(SessionVerifierTest, AStreamBeginsWhereTheModelIsThatItWasPromised) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  // Replaced since they were asked what they are.
  processes_[0].weights_hash = "others";
  for (int i = 0; i < 4; ++i) AddStream();
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
  EXPECT_EQ(processes_[1].sessions.size(), 4u);
}

TEST_F(SessionVerifierTest, AStreamWhoseModelIsNowhereDoesNotBegin) {
  Start(/*num_verifiers=*/1, /*num_streams=*/0);
  processes_[0].weights_hash = "others";
  Stream& stream = AddStream();
  RunToEnd();
  EXPECT_THAT(*stream.end, StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(stream.num_steps, 0);
  // It is asked anew at once, and the next stream has what is there.
  Stream& next = AddStream();
  RunToEnd();
  EXPECT_THAT(*next.end, IsOk());
}

}  // namespace
}  // namespace outrider
