// SPDX-License-Identifier: Apache-2.0
// Streams that go on at another verifier, in virtual time.
#include <chrono>

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
using ::outrider::testing::kFakeStep;
using ::outrider::testing::StatusIs;
using ::outrider::testing::VerifierStreams;
using std::chrono::milliseconds;

class SessionVerifierMovesTest : public VerifierStreams {};

TEST_F(SessionVerifierMovesTest,
       AVerifierOfTheSameModelTakesOverWhateverItsBuild) {
  processes_.resize(2);
  NodeDescription& other = processes_[1].description;
  other.context_length = 50;  // for a text of four
  other.max_draft_tokens = 8;
  other.eos_ids.push_back(9);
  ++other.protocol_version;
  other.reply_formats.push_back(ReplyFormat::kTokens);
  other.rules.push_back(RuleKind::kBlock);
  Start(/*num_verifiers=*/2, /*num_streams=*/4);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].is_draining = true;
  RunUntil([&] { return HaveAllSteps(50); });
  processes_[0].Die();
  RunToEnd();
  EXPECT_EQ(NumMoves(MoveReason::kDraining), 2);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// It would be sent the same step again, and no other could answer that.
TEST_F(SessionVerifierMovesTest, AStepIsNotLateForVerifiersOfAnotherModel) {
  processes_.resize(2);
  processes_[1].weights_hash = "others";
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(10) && InFlight() == nullptr; });
  for (FakeProcess& process : processes_) process.is_hung = true;
  const auto hung_at = loop_.elapsed();
  RunUntil([&] { return loop_.elapsed() - hung_at > std::chrono::seconds(5); });
  for (FakeProcess& process : processes_) process.is_hung = false;
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_EQ(streams_[0]->num_retries, 0);
}

// One that is begun anew there asks for what it serves.
TEST_F(SessionVerifierMovesTest, AStreamThatNoOtherServesIsToBeResumed) {
  processes_.resize(2);
  processes_[1].description.rules = {RuleKind::kBlock};
  Start(/*num_verifiers=*/2, /*num_streams=*/2);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  RunToEnd();
  const int lost = streams_[0]->end->ok() ? 1 : 0;
  EXPECT_TRUE(absl::IsUnavailable(*streams_[lost]->end));
  EXPECT_THAT(*streams_[1 - lost]->end, IsOk());
}

TEST_F(SessionVerifierMovesTest,
       AMovedStreamThatFindsNoRoomGoesOnWhereThereIsSome) {
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  Stream& stream = *streams_[0];
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  InFlight()->Die();
  const VerifierNode* const first = &stream.verifier->node();
  RunUntil([&] { return &stream.verifier->node() != first; });
  const VerifierNode* const second = &stream.verifier->node();
  ProcessAt(second->link.address).is_full = true;
  const auto refused_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(10); });
  EXPECT_NE(&stream.verifier->node(), second);
  EXPECT_LT(loop_.elapsed() - refused_at, std::chrono::seconds(1));
}

TEST_F(SessionVerifierMovesTest, AMovedStreamThatFindsNoRoomAnywhereHolds) {
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  for (FakeProcess& process : processes_) process.is_full = true;
  InFlight()->Die();
  RunUntil([&] { return pool_->moves().num_held == 1; });
  for (FakeProcess& process : processes_) process.is_full = false;
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(pool_->moves().num_held, 0);
}

// What such a step takes is no time of the network's.
TEST_F(SessionVerifierMovesTest, AStepSaysHowOftenItWasRefusedLostOrMoved) {
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  Stream& stream = *streams_[0];
  RunUntil([&] { return HaveAllSteps(10); });
  EXPECT_EQ(stream.num_retries, 0);
  for (FakeProcess& process : processes_) {
    process.refusal = WithRetryDelay(absl::ResourceExhaustedError("full"),
                                     std::chrono::seconds(1));
  }
  RunUntil([&] { return pool_->moves().num_held == 1; });
  for (FakeProcess& process : processes_) process.refusal = absl::OkStatus();
  RunUntil([&] { return HaveAllSteps(20); });
  EXPECT_EQ(stream.num_retries, 1);
  RunUntil([&] { return HaveAllSteps(30) && InFlight() != nullptr; });
  InFlight()->Die();
  RunUntil([&] { return HaveAllSteps(40); });
  EXPECT_EQ(NumMoves(MoveReason::kLost), 1);
  EXPECT_EQ(stream.num_retries, 2);
  Restart(/*after=*/milliseconds(100));
  RunUntil([&] { return HaveAllSteps(60) && InFlight() != nullptr; });
  InFlight()->is_draining = true;
  RunToEnd();
  EXPECT_EQ(NumMoves(MoveReason::kDraining), 1);
  EXPECT_EQ(stream.num_retries, 3);
}

// One waits there until the other was taken in, and does not go back meanwhile.
TEST_F(SessionVerifierMovesTest, StreamsUnderWhichAPassFailsGoOnElsewhere) {
  Start(/*num_verifiers=*/2, /*num_streams=*/4);
  for (FakeProcess& process : processes_) process.next_reprefill_in = 1;
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[0].num_failing = 2;
  RunToEnd();
  EXPECT_EQ(NumMoves(MoveReason::kFailed), 2);
  EXPECT_EQ(processes_[1].num_moved, 2);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// It is opened again at the only one, which has dropped it.
TEST_F(SessionVerifierMovesTest, AStreamUnderWhichAPassFailsGoesOnWhereItIs) {
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  for (int i = 1; i <= 3; ++i) {
    RunUntil([&] { return HaveAllSteps(20 * i); });
    processes_[0].num_failing = 1;
  }
  RunToEnd();
  EXPECT_EQ(processes_[0].num_failing, 0);
  EXPECT_EQ(NumMoves(MoveReason::kFailed), 0);
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

TEST_F(SessionVerifierMovesTest, AStreamIsNotOpenedAgainForEverWhereItFails) {
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  for (int i = 1; i <= 4; ++i) {
    RunUntil([&] { return HaveAllSteps(10 * i); });
    processes_[0].num_failing = 1;
  }
  EXPECT_LT(loop_.elapsed(), MoveLimit::kWindow);
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, StatusIs(absl::StatusCode::kInternal));
}

// It may be what passes fail of.
TEST_F(SessionVerifierMovesTest, AStreamThatFailsAtTwoIsTriedAtNoThird) {
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.num_failing = 1;
  RunToEnd();
  int num_failed = 0;
  for (const FakeProcess& process : processes_) {
    num_failed += 1 - process.num_failing;
  }
  EXPECT_EQ(num_failed, 2);
  EXPECT_THAT(*streams_[0]->end, StatusIs(absl::StatusCode::kInternal));
}

// It began elsewhere, and its first step here is not the first of its stream.
TEST_F(SessionVerifierMovesTest, AResumedStreamGoesOnAfterOneFailedPass) {
  use_.is_resumed = true;
  Start(/*num_verifiers=*/1, /*num_streams=*/0);
  processes_[0].num_failing = 1;
  AddStream();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  processes_[0].num_failing = 5;
  AddStream();
  RunToEnd();
  EXPECT_THAT(*streams_[1]->end, StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(processes_[0].num_failing, 3);
}

// It waits for a verifier where it comes, and then for a pass.
TEST_F(SessionVerifierMovesTest, AResumedStreamThatHeldGoesOnAfterAFailedPass) {
  use_.is_resumed = true;
  Start(/*num_verifiers=*/1, /*num_streams=*/0);
  processes_[0].is_up = false;
  AddStream();
  RunUntil([&] { return pool_->moves().num_held == 1; });
  processes_[0].is_up = true;
  processes_[0].num_failing = 1;
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

TEST_F(SessionVerifierMovesTest, AMovedStreamTakesATurnAtOtherKernels) {
  processes_.resize(3);
  for (int i = 0; i < 3; ++i) processes_[i].description.numerics = 'a' + i;
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& first = *InFlight();
  FakeProcess& shut = processes_[&first == &processes_[0] ? 1 : 0];
  FakeProcess& open = processes_[&first == &processes_[2] ? 1 : 2];
  auto choice = pool_->ChooseVerifier(
      {}, [&](const VerifierNode& node, const NodeDescription&) {
        return &ProcessAt(node.link.address) == &shut;
      });
  const MoveGate::Turn turn = choice.seat->gate.Enter(1, loop_.now());
  ASSERT_TRUE(turn);
  open.is_up = false;
  first.Die();
  RunUntil([&] { return NumMoves(MoveReason::kLost) == 1; });
  open.is_up = true;
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(open.sessions.size(), 1u);
}

TEST_F(SessionVerifierMovesTest, AStreamThatHoldsLeavesAVerifierThatDrains) {
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& full = *InFlight();
  full.refusal = WithRetryDelay(absl::ResourceExhaustedError("full"),
                                std::chrono::seconds(1));
  RunUntil([&] { return pool_->moves().num_held == 1; });
  full.is_draining = true;
  const auto draining_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(10); });
  EXPECT_LT(loop_.elapsed() - draining_at, std::chrono::seconds(3));
  EXPECT_EQ(NumMoves(MoveReason::kDraining), 1);
}

// A roll-out of nodes is orderly, and says nothing of the session.
TEST_F(SessionVerifierMovesTest,
       AStreamDrainsAwayMoreOftenThanItMayLoseVerifiers) {
  num_steps_ = 1000;
  Start(/*num_verifiers=*/6, /*num_streams=*/1);
  for (int i = 1; i <= 4; ++i) {
    RunUntil([&] { return HaveAllSteps(10 * i) && InFlight() != nullptr; });
    InFlight()->is_draining = true;
    RunUntil([&] { return NumMoves(MoveReason::kDraining) == i; });
  }
  EXPECT_LT(loop_.elapsed(), MoveLimit::kWindow);
  RunUntil([&] { return HaveAllSteps(50) && InFlight() != nullptr; });
  InFlight()->Die();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(NumMoves(MoveReason::kLost), 1);
}

TEST_F(SessionVerifierMovesTest,
       AMovedStreamThatFindsNoRoomGoesOnWithFewerDrafts) {
  num_drafts_ = 4;
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& first = *InFlight();
  FakeProcess& full = processes_[&first == &processes_[0] ? 1 : 0];
  FakeProcess& other = processes_[&first == &processes_[2] ? 1 : 2];
  full.is_full = true;
  other.description.max_draft_tokens = 2;
  // The pool knows that by then.
  RunUntil([&] { return HaveAllSteps(40) && first.num_in_flight > 0; });
  first.Die();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(streams_[0]->num_drafts, 2);
  EXPECT_EQ(other.sessions.size(), 1u);
}

// It has nothing left there, so that another one costs it the same.
TEST_F(SessionVerifierMovesTest, APreemptedStreamGoesOnWhereThereIsRoom) {
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& full = *InFlight();
  full.is_full = full.preempts = true;
  const auto preempted_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(10); });
  EXPECT_LT(loop_.elapsed() - preempted_at, std::chrono::seconds(1));
  EXPECT_TRUE(full.sessions.empty());  // it waits for it no longer
}

// Each of both would preempt it again, as it is the youngest where it comes.
TEST_F(SessionVerifierMovesTest, APreemptedStreamStaysBeforeItGoesAFourthTime) {
  num_steps_ = 1000;
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  const auto preempt = [&] {
    FakeProcess& at = *InFlight();
    for (FakeProcess& process : processes_) {
      process.is_full = process.preempts = &process == &at;
    }
  };
  for (size_t i = 1; i <= MoveLimit::kMaxMoves; ++i) {
    const int num_steps = 10 * static_cast<int>(i);
    RunUntil([&] { return HaveAllSteps(num_steps) && InFlight() != nullptr; });
    preempt();
    RunUntil([&] { return HaveAllSteps(num_steps + 5); });
  }
  RunUntil([&] { return HaveAllSteps(40) && InFlight() != nullptr; });
  preempt();
  RunUntil([&] { return pool_->moves().num_held == 1; });
  EXPECT_LT(loop_.elapsed(), MoveLimit::kWindow);
  for (FakeProcess& process : processes_) process.is_full = false;
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

// What no other one took in has not moved.
TEST_F(SessionVerifierMovesTest, APreemptedStreamThatStayedMayStillGo) {
  num_steps_ = 1000;
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& first = *InFlight();
  FakeProcess& other = processes_[&first == &processes_[0] ? 1 : 0];
  for (size_t i = 1; i <= MoveLimit::kMaxMoves + 1; ++i) {
    RunUntil([&] { return first.num_in_flight > 0; });
    first.is_full = first.preempts = other.is_full = true;
    RunUntil([&] { return pool_->moves().num_held == 1; });
    first.is_full = first.preempts = false;
    RunUntil([&] { return HaveAllSteps(10 * static_cast<int>(i)); });
  }
  RunUntil([&] { return first.num_in_flight > 0; });
  first.is_full = first.preempts = true;
  other.is_full = false;
  RunUntil([&] { return other.num_in_flight > 0; });
  EXPECT_LT(loop_.elapsed(), MoveLimit::kWindow);
}

// There it keeps its age, by which it comes first.
TEST_F(SessionVerifierMovesTest, APreemptedStreamStaysKnownWhereNoneHasRoom) {
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& first = *InFlight();
  first.preempts = true;
  for (FakeProcess& process : processes_) process.is_full = true;
  RunUntil([&] { return pool_->moves().num_held == 1; });
  const auto held_at = loop_.elapsed();
  RunUntil([&] { return loop_.elapsed() - held_at > std::chrono::seconds(5); });
  EXPECT_EQ(first.sessions.size(), 1u);
  EXPECT_LE(processes_[0].num_refused + processes_[1].num_refused, 14);
  first.is_full = first.preempts = false;
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(first.num_stale, 0);
}

TEST_F(SessionVerifierMovesTest, PreemptedStreamsComeWhenTheOtherHasTime) {
  Start(/*num_verifiers=*/2, /*num_streams=*/10);
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[1].next_reprefill_in = 1;
  const auto num_left = static_cast<int>(processes_[0].sessions.size());
  ASSERT_GE(num_left, 3);
  processes_[0].is_full = processes_[0].preempts = true;
  const auto preempted_at = loop_.elapsed();
  RunUntil([&] { return processes_[1].num_moved == num_left; });
  const auto took = loop_.elapsed() - preempted_at;
  EXPECT_GE(took, std::chrono::seconds(num_left - 1));
  EXPECT_LE(took, std::chrono::seconds(2 * num_left));
  EXPECT_LE(processes_[0].num_refused, num_left * 2 * num_left);
}

// It would be refused by the one, sent on to the other and back for as long as
// that takes nobody in.
TEST_F(SessionVerifierMovesTest, AMovedStreamAsksTheFullOneWhenThatSays) {
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& first = *InFlight();
  FakeProcess& full = processes_[&first == &processes_[0] ? 1 : 0];
  FakeProcess& shut = processes_[&first == &processes_[2] ? 1 : 2];
  full.is_full = true;
  auto choice = pool_->ChooseVerifier(
      {}, [&](const VerifierNode& node, const NodeDescription&) {
        return &ProcessAt(node.link.address) == &shut;
      });
  MoveGate::Turn turn = choice.seat->gate.Enter(1, loop_.now());
  ASSERT_TRUE(turn);
  first.Die();
  const auto lost_at = loop_.elapsed();
  RunUntil([&] { return loop_.elapsed() - lost_at > std::chrono::seconds(5); });
  EXPECT_GE(full.num_refused, 2);
  EXPECT_LE(full.num_refused, 6);
  turn = {};
  choice.seat.reset();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(shut.sessions.size(), 1u);
}

// Passes take other sessions' rows along, which is no time that they lose.
TEST_F(SessionVerifierMovesTest, OnlyItsOwnRowsAreInAMovedSessionsQuarter) {
  Start(/*num_verifiers=*/2, /*num_streams=*/100);
  for (FakeProcess& process : processes_) process.own_share = 0.25;
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  const auto lost_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_LT(loop_.elapsed() - lost_at, 50 * 3 * kFakeStep);
}

TEST_F(SessionVerifierMovesTest, MovedSessionsComeWhenTheNodeHasTimeForThem) {
  Start(/*num_verifiers=*/2, /*num_streams=*/10);
  RunUntil([&] { return HaveAllSteps(3); });
  EXPECT_EQ(processes_[0].num_moved + processes_[1].num_moved, 0);
  processes_[1].next_reprefill_in = 1;
  const auto num_left = static_cast<int>(processes_[0].sessions.size());
  ASSERT_GE(num_left, 3);
  processes_[0].Die();
  const auto lost_at = loop_.elapsed();
  RunUntil([&] { return processes_[1].num_moved == num_left; });
  EXPECT_GE(loop_.elapsed() - lost_at, std::chrono::seconds(num_left - 1));
  EXPECT_LE(loop_.elapsed() - lost_at, std::chrono::seconds(num_left));
}

}  // namespace
}  // namespace outrider
