// SPDX-License-Identifier: Apache-2.0
// Streams whose verifier comes back as what cannot or will not serve them, such
// as another service, or one with other certificates.
#include <chrono>
#include <vector>

#include "coordinator/nodes/session_verifier.h"
#include "core/base/retry_delay.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/verifier_streams.h"

namespace outrider {
namespace {

using ::outrider::testing::FakeProcess;
using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::outrider::testing::VerifierStreams;

const absl::Status kAnswers[] = {absl::UnimplementedError("no such method"),
                                 absl::PermissionDeniedError("not for you"),
                                 absl::UnauthenticatedError("who are you?"),
                                 absl::UnknownError("what?")};

class MisplacedVerifierTest
    : public VerifierStreams,
      public ::testing::WithParamInterface<absl::Status> {};

INSTANTIATE_TEST_SUITE_P(All, MisplacedVerifierTest,
                         ::testing::ValuesIn(kAnswers));

TEST_P(MisplacedVerifierTest, AStreamHoldsUntilItIsItselfAgain) {
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  processes_[0].is_up = true;
  processes_[0].unsaid = processes_[0].refusal = GetParam();
  const auto since = loop_.elapsed();
  RunUntil([&] { return loop_.elapsed() - since > std::chrono::seconds(30); });
  EXPECT_EQ(pool_->moves().num_held, 1);
  processes_[0].unsaid = processes_[0].refusal = absl::OkStatus();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

TEST_P(MisplacedVerifierTest, AStreamGoesOnAtAnother) {
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(10) && InFlight() != nullptr; });
  FakeProcess& own = *InFlight();
  own.unsaid = own.refusal = GetParam();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(NumMoves(MoveReason::kLost), 1);
}

// The session may be what it answers so: no other than its client knows.
TEST_P(MisplacedVerifierTest, AStreamEndsWhereItSaysThatAllIsWell) {
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].refusal = GetParam();
  const auto since = loop_.elapsed();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_GT(loop_.elapsed() - since, std::chrono::seconds(1));
  EXPECT_LT(loop_.elapsed() - since, std::chrono::seconds(5));
}

// What it answered while it said nothing of itself is no sign of that.
TEST_P(MisplacedVerifierTest, AStreamThatHasHeldOutlastsALateRefusal) {
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].unsaid = processes_[0].refusal = GetParam();
  const auto run_for = [&](std::chrono::seconds time) {
    const auto since = loop_.elapsed();
    RunUntil([&] { return loop_.elapsed() - since > time; });
  };
  run_for(std::chrono::seconds(30));
  processes_[0].unsaid = absl::OkStatus();
  run_for(std::chrono::seconds(2));
  processes_[0].refusal = absl::OkStatus();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

class SteplessVerifierTest : public VerifierStreams {
 protected:
  SteplessVerifierTest() {
    Start(/*num_verifiers=*/1, /*num_streams=*/1);
    RunUntil([&] { return HaveAllSteps(10); });
    begun_at_ = loop_.elapsed();
  }
  // It says what it is, and answers each step so, for so long.
  void Answer(const absl::Status& answer, std::chrono::seconds time) {
    processes_[0].refusal = answer;
    const auto since = loop_.elapsed();
    RunUntil([&] {
      return streams_[0]->end.has_value() || loop_.elapsed() - since > time;
    });
    processes_[0].refusal = absl::OkStatus();
  }
  const absl::Status broken_off_ = absl::UnavailableError("it broke");
  testing::EventLoop::Clock::duration begun_at_ = {};
};

TEST_F(SteplessVerifierTest, AStreamOutlastsItForAWhile) {
  Answer(broken_off_, std::chrono::seconds(25));
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

// It holds for room as long as it takes.
TEST_F(SteplessVerifierTest, WhatItWaitsForRoomMeanwhileDoesNotCount) {
  Answer(broken_off_, std::chrono::seconds(2));
  Answer(WithRetryDelay(absl::ResourceExhaustedError("full"),
                        std::chrono::milliseconds(500)),
         std::chrono::minutes(1));
  Answer(broken_off_, std::chrono::seconds(2));
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

// Another coordinator may reach it.
TEST_F(SteplessVerifierTest, AStreamEndsWhileItsClientMayStillResumeIt) {
  Answer(broken_off_, std::chrono::minutes(5));
  EXPECT_THAT(*streams_[0]->end, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_LT(loop_.elapsed() - begun_at_, std::chrono::seconds(35));
}

TEST_P(MisplacedVerifierTest, AnOpeningIsRefusedAtOnce) {
  Start(/*num_verifiers=*/1, /*num_streams=*/0);
  processes_[0].refusal = GetParam();
  AddStream();
  RunToEnd();
  EXPECT_EQ(*streams_[0]->end, GetParam());
  EXPECT_EQ(processes_[0].num_refused, 1);
}

}  // namespace
}  // namespace outrider
