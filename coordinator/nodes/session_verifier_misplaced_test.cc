// SPDX-License-Identifier: Apache-2.0
// Streams whose verifier comes back as what cannot or will not serve them, such
// as another service, or one with other certificates.
#include <chrono>
#include <vector>

#include "coordinator/nodes/session_verifier.h"
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
