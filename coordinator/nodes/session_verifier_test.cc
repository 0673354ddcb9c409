// SPDX-License-Identifier: Apache-2.0
// Sessions on verifiers that hang, drain and are replaced, in virtual time.
#include "coordinator/nodes/session_verifier.h"

#include <chrono>
#include <string>

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

TEST_F(SessionVerifierTest, AVerifierOfTheSameModelTakesOverWhateverItsBuild) {
  processes_.resize(2);
  NodeDescription& other = processes_[1].description;
  other.context_length = 500;
  other.max_draft_tokens = 8;
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

// One that is begun anew there asks for what it serves.
TEST_F(SessionVerifierTest, AStreamThatNoOtherServesIsToBeResumed) {
  processes_.resize(2);
  processes_[1].description.context_length = 50;
  Start(/*num_verifiers=*/2, /*num_streams=*/2);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  RunToEnd();
  const int lost = streams_[0]->end->ok() ? 1 : 0;
  EXPECT_TRUE(absl::IsUnavailable(*streams_[lost]->end));
  EXPECT_THAT(*streams_[1 - lost]->end, IsOk());
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

TEST_F(SessionVerifierTest, AMovedStreamThatFindsNoRoomGoesOnWhereThereIsSome) {
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

TEST_F(SessionVerifierTest, AMovedStreamThatFindsNoRoomAnywhereHolds) {
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
TEST_F(SessionVerifierTest, AStepSaysHowOftenItWasRefusedLostOrMoved) {
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
TEST_F(SessionVerifierTest, StreamsUnderWhichAPassFailsGoOnElsewhere) {
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
TEST_F(SessionVerifierTest, AStreamUnderWhichAPassFailsGoesOnWhereItIs) {
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

TEST_F(SessionVerifierTest, AStreamIsNotOpenedAgainForEverWhereItFails) {
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
TEST_F(SessionVerifierTest, AStreamThatFailsAtTwoIsTriedAtNoThird) {
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

// A roll-out of nodes is orderly, and says nothing of the session.
TEST_F(SessionVerifierTest, AStreamDrainsAwayMoreOftenThanItMayLoseVerifiers) {
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

class RefusedSessionTest : public SessionVerifierTest {
 protected:
  RefusedSessionTest() { Start(/*num_verifiers=*/1, /*num_streams=*/0); }

  // The verifier is full, and says when to come again.
  void Fill() {
    processes_[0].refusal = WithRetryDelay(absl::ResourceExhaustedError("full"),
                                           std::chrono::seconds(1));
  }
  // It is asked no sooner than it says, and no later than half as long again,
  // until it has room.
  void ExpectAskedWhenItSays() {
    const auto begin = loop_.elapsed();
    RunUntil(
        [&] { return loop_.elapsed() - begin > std::chrono::seconds(30); });
    EXPECT_GE(processes_[0].num_refused, 20);
    EXPECT_LE(processes_[0].num_refused, 31);
    processes_[0].refusal = absl::OkStatus();
    RunToEnd();
    EXPECT_THAT(*streams_[0]->end, IsOk());
  }
};

TEST_F(RefusedSessionTest, AStepIsSentAgainWhenTheRefusalSays) {
  AddStream();
  RunUntil([&] { return HaveAllSteps(3); });
  Fill();
  ExpectAskedWhenItSays();
}

TEST_F(RefusedSessionTest, AnOpeningIsSentAgainWhenTheRefusalSays) {
  Fill();
  AddStream();
  EXPECT_EQ(pool_->waiting_room().num_waiting(), 1);
  ExpectAskedWhenItSays();
}

// Each would sleep for a second, and what is new take the room meanwhile.
TEST_F(RefusedSessionTest, StreamsThatHoldGoOnFirstWhereASessionLeaves) {
  for (int i = 0; i < 2; ++i) AddStream();
  RunUntil([&] { return HaveAllSteps(3); });
  Fill();
  Stream& added = AddStream();
  RunUntil([&] {
    return pool_->moves().num_held == 2 &&
           pool_->waiting_room().num_waiting() == 1;
  });
  processes_[0].refusal = absl::OkStatus();
  const auto begin = loop_.elapsed();
  const int num_steps[] = {streams_[0]->num_steps, streams_[1]->num_steps};
  pool_->releases().Release(pool_->ChooseVerifier({}, {}).seat, {});
  RunUntil([&] { return added.num_steps == 1; });
  EXPECT_LT(loop_.elapsed() - begin, milliseconds(100));
  for (int i = 0; i < 2; ++i) EXPECT_GT(streams_[i]->num_steps, num_steps[i]);
  RunToEnd();
}

TEST_F(RefusedSessionTest, AStreamThatIsResumedComesBeforeWhatIsNew) {
  Fill();
  Stream& added = AddStream();
  use_.is_resumed = true;
  Stream& resumed = AddStream();
  EXPECT_EQ(pool_->waiting_room().num_waiting(), 2);
  processes_[0].refusal = absl::OkStatus();
  pool_->releases().Release(pool_->ChooseVerifier({}, {}).seat, {});
  RunUntil([&] { return resumed.num_steps == 1; });
  EXPECT_EQ(added.num_steps, 0);
  RunToEnd();
}

TEST_F(SessionVerifierTest, AVerifierThatIsBackAndTakesFewerDraftsHasThem) {
  num_drafts_ = 4;
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[0].Die();
  processes_[0].description.max_draft_tokens = 2;
  Restart(/*after=*/milliseconds(100));
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(streams_[0]->num_drafts, 2);
}

TEST_F(SessionVerifierTest, AVerifierThatIsBackWithTooLittleMemoryIsOutgrown) {
  prompt_.assign(50, 1);
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[0].Die();
  processes_[0].description.kv_cache_tokens = 40;
  Restart(/*after=*/milliseconds(100));
  RunToEnd();
  EXPECT_TRUE(IsOutgrown(*streams_[0]->end));
}

TEST_F(SessionVerifierTest, AnOpeningLeavesAVerifierThatIsBackWithTooLittle) {
  prompt_.assign(50, 1);
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  for (FakeProcess& process : processes_) process.Die();
  AddStream();
  processes_[0].description.kv_cache_tokens = 40;
  for (int i = 0; i < 2; ++i) {
    loop_.After(milliseconds(300 + 2000 * i),
                [this, i] { processes_[i].is_up = true; });
  }
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

// The first of them finds out, and the others know.
TEST_F(SessionVerifierTest, WhereAVerifierIsBackWithLessMemoryItIsAskedOnce) {
  prompt_.assign(50, 1);
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  processes_[0].description.kv_cache_tokens = 40;
  for (int i = 0; i < 8; ++i) AddStream();
  EXPECT_EQ(processes_[0].num_described, 2);
  EXPECT_EQ(processes_[1].num_described, 1);
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
  EXPECT_EQ(processes_[1].sessions.size(), 8u);
}

TEST_F(SessionVerifierTest, AVerifierThatRefusesAsAnotherModelIsLeft) {
  num_drafts_ = 4;
  Start(/*num_verifiers=*/2, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& replaced = *InFlight();
  replaced.Die();
  replaced.is_up = true;
  replaced.weights_hash = "others";
  replaced.description.max_draft_tokens = 2;
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(streams_[0]->num_drafts, 4);
  EXPECT_EQ(NumMoves(MoveReason::kReplaced), 1);
}

TEST_F(SessionVerifierTest, WhatAVerifierRefusesAsItIsKnownIsRefused) {
  Start(/*num_verifiers=*/1, /*num_streams=*/0);
  Stream& stream = AddStream();
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[0].refusal = absl::InvalidArgumentError("no such token");
  RunToEnd();
  EXPECT_EQ(*stream.end, processes_[0].refusal);
}

// It may be another process by then.
TEST_F(SessionVerifierTest, AVerifierThatRefusesAndSaysNothingIsAskedAgain) {
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[0].is_draining = true;
  processes_[0].refusal = absl::InvalidArgumentError("by then");
  RunUntil([&] { return pool_->moves().num_held == 1; });
  processes_[0].refusal = absl::OkStatus();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

TEST_F(SessionVerifierTest, AMovedStreamThatFindsNoRoomGoesOnWithFewerDrafts) {
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

TEST_F(SessionVerifierTest, AnOpeningThatFindsNoRoomGoesOnWithFewerDrafts) {
  num_drafts_ = 4;
  processes_.resize(2);
  processes_[0].is_full = true;
  processes_[1].description.max_draft_tokens = 2;
  Start(/*num_verifiers=*/2, /*num_streams=*/4);
  RunToEnd();
  for (const auto& stream : streams_) {
    EXPECT_THAT(*stream->end, IsOk());
    EXPECT_EQ(stream->num_drafts, 2);
  }
  EXPECT_EQ(pool_->waiting_room().num_waiting(), 0);
}

// Passes take other sessions' rows along, which is no time that they lose.
TEST_F(SessionVerifierTest, OnlyItsOwnRowsAreInAMovedSessionsQuarter) {
  Start(/*num_verifiers=*/2, /*num_streams=*/100);
  for (FakeProcess& process : processes_) process.own_share = 0.25;
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  const auto lost_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_LT(loop_.elapsed() - lost_at, 50 * 3 * kFakeStep);
}

TEST_F(SessionVerifierTest, MovedSessionsComeWhenTheNodeHasTimeForThem) {
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
