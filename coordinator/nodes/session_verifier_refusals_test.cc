// SPDX-License-Identifier: Apache-2.0
// Steps that verifiers refuse, for now or for good, in virtual time.
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "coordinator/nodes/session_errors.h"
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
using std::chrono::milliseconds;

class SessionVerifierRefusalsTest : public VerifierStreams {};

class RefusedSessionTest : public SessionVerifierRefusalsTest {
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

// Or room for it would never add up.
TEST_F(RefusedSessionTest, ALongTextThatHasWaitedIsPassedByShortOnesNoMore) {
  const auto run_for = [&](milliseconds time) {
    const auto begin = loop_.elapsed();
    RunUntil([&] { return loop_.elapsed() - begin > time; });
  };
  processes_[0].longest_text = 10;
  const std::vector<TokenId> short_prompt =
      std::exchange(prompt_, std::vector<TokenId>(50, 1));
  const Stream& waits = AddStream();
  run_for(milliseconds(100));
  prompt_ = short_prompt;
  const Stream& early = AddStream();
  run_for(milliseconds(100));
  EXPECT_GT(early.num_steps, 0);
  run_for(WaitingRoom::kPatience);
  const Stream& late = AddStream();
  run_for(std::chrono::seconds(10));
  EXPECT_EQ(late.num_steps, 0);
  EXPECT_EQ(waits.num_steps, 0);
  processes_[0].longest_text = SIZE_MAX;
  pool_->releases().Release(pool_->ChooseVerifier({}, {}).seat, {});
  RunUntil([&] { return late.num_steps > 0; });
  EXPECT_GT(waits.num_steps, 0);
  RunToEnd();
}

// To look often whether room is kept costs the verifier that keeps it nothing,
// but the other, for which the long text does not wait, is really asked.
TEST_F(SessionVerifierRefusalsTest, WhereNoRoomIsKeptItIsAskedAsItSays) {
  constexpr int kShort = 4;
  processes_.resize(2);
  processes_[0].description.kv_cache_tokens = 40;
  processes_[1].longest_text = 10;
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  const std::vector<TokenId> short_prompt =
      std::exchange(prompt_, std::vector<TokenId>(50, 1));
  AddStream();
  prompt_ = short_prompt;
  RunUntil([&] { return loop_.elapsed() > std::chrono::seconds(3); });
  processes_[0].refusal = WithRetryDelay(absl::ResourceExhaustedError("full"),
                                         std::chrono::seconds(1));
  for (int i = 0; i < kShort; ++i) AddStream();
  RunUntil([&] { return loop_.elapsed() > std::chrono::seconds(13); });
  for (int i = 1; i <= kShort; ++i) EXPECT_EQ(streams_[i]->num_steps, 0);
  EXPECT_GE(processes_[0].num_refused, 6 * kShort);
  EXPECT_LE(processes_[0].num_refused, 11 * kShort);
  for (FakeProcess& process : processes_) {
    process.refusal = absl::OkStatus();
    process.longest_text = SIZE_MAX;
  }
  RunToEnd();
}

TEST_F(SessionVerifierRefusalsTest,
       AVerifierThatIsBackAndTakesFewerDraftsHasThem) {
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

TEST_F(SessionVerifierRefusalsTest,
       AVerifierThatIsBackWithTooLittleMemoryIsOutgrown) {
  prompt_.assign(50, 1);
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[0].Die();
  processes_[0].description.kv_cache_tokens = 40;
  Restart(/*after=*/milliseconds(100));
  RunToEnd();
  EXPECT_TRUE(IsOutgrown(*streams_[0]->end));
}

TEST_F(SessionVerifierRefusalsTest,
       AnOpeningLeavesAVerifierThatIsBackWithTooLittle) {
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

TEST_F(SessionVerifierRefusalsTest, AnOpeningLeavesAnotherModelAtOnce) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  for (FakeProcess& process : processes_) process.is_up = false;
  AddStream();
  RunUntil([&] { return pool_->moves().num_held == 1; });
  FakeProcess& other = ProcessAt(streams_[0]->verifier->node().link.address);
  other.weights_hash = "others";
  const auto choose = [&] {
    return pool_->ChooseVerifier(
        {}, [&](const VerifierNode& node, const NodeDescription&) {
          return &ProcessAt(node.link.address) != &other;
        });
  };
  RunUntil([&] { return choose().seat == nullptr; });
  for (FakeProcess& process : processes_) process.is_up = true;
  RunUntil([&] { return choose().seat != nullptr; });
  choose().seat->PutOut(loop_.now());
  const auto put_out_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(1); });
  EXPECT_LT(loop_.elapsed() - put_out_at, std::chrono::seconds(2));
  // It has the session open, and is told.
  EXPECT_TRUE(other.released.contains(streams_[0]->id));
}

// The first of them finds out, and the others know.
TEST_F(SessionVerifierRefusalsTest,
       WhereAVerifierIsBackWithLessMemoryItIsAskedOnce) {
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

TEST_F(SessionVerifierRefusalsTest, AVerifierThatRefusesAsAnotherModelIsLeft) {
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

TEST_F(SessionVerifierRefusalsTest, WhatAVerifierRefusesAsItIsKnownIsRefused) {
  Start(/*num_verifiers=*/1, /*num_streams=*/0);
  Stream& stream = AddStream();
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[0].refusal = absl::InvalidArgumentError("no such token");
  RunToEnd();
  EXPECT_EQ(*stream.end, processes_[0].refusal);
}

// It may be another process by then.
TEST_F(SessionVerifierRefusalsTest,
       AVerifierThatRefusesAndSaysNothingIsAskedAgain) {
  Start(/*num_verifiers=*/1, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3); });
  processes_[0].is_draining = true;
  processes_[0].refusal = absl::InvalidArgumentError("by then");
  RunUntil([&] { return pool_->moves().num_held == 1; });
  processes_[0].refusal = absl::OkStatus();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

TEST_F(SessionVerifierRefusalsTest,
       AnOpeningThatFindsNoRoomGoesOnWithFewerDrafts) {
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

// It is back, and new requests come in there.
TEST_F(SessionVerifierRefusalsTest, AnOpeningThatWaitsTriesWhereItFailedOnce) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  processes_[0].is_full = true;
  processes_[1].num_failing = 1;
  AddStream();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(processes_[1].sessions.size(), 1u);
}

// What it waits for is room at the other.
TEST_F(SessionVerifierRefusalsTest, AnOpeningThatWaitsOutlivesOneThatIsLost) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  processes_[0].refusal =
      WithRetryDelay(absl::ResourceExhaustedError("full"), milliseconds(20));
  RunUntil([&] { return processes_[1].num_described == 2; });
  processes_[1].Die();
  AddStream();
  RunUntil([&] { return loop_.elapsed() > std::chrono::seconds(5); });
  processes_[0].refusal = absl::OkStatus();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
}

// It may be what passes fail of, at one verifier as at two.
TEST_F(SessionVerifierRefusalsTest, AnOpeningThatWaitsFailsTwiceAndNoMore) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  processes_[0].is_full = true;
  processes_[1].num_failing = 5;
  AddStream();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(processes_[1].num_failing, 3);
}

TEST_F(SessionVerifierRefusalsTest, AnOpeningGoesToOtherKernelsOfItsModel) {
  processes_.resize(2);
  for (FakeProcess& process : processes_) {
    process.description.numerics = &process == &processes_[0] ? "one" : "two";
  }
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  processes_[0].is_full = true;
  for (int i = 0; i < 4; ++i) AddStream();
  RunToEnd();
  EXPECT_EQ(processes_[1].sessions.size(), 4u);
}

TEST_F(SessionVerifierRefusalsTest,
       WhereItsTextIsPromisedItWaitsForItsKernels) {
  sampling_.temperature = 0;
  processes_.resize(2);
  processes_[0].is_full = true;
  processes_[1].description.numerics = "two";
  Start(/*num_verifiers=*/2, /*num_streams=*/4);
  const size_t num_left = pool_->waiting_room().num_waiting();
  EXPECT_GT(num_left, 0u);
  RunUntil([&] { return loop_.elapsed() > std::chrono::seconds(5); });
  processes_[0].is_full = false;
  RunToEnd();
  EXPECT_EQ(processes_[0].sessions.size(), num_left);
}

// It has waited for a verifier to be there, and nobody has had its text.
TEST_F(SessionVerifierRefusalsTest, AnOpeningThatIsRefusedIsNoMovedStream) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  for (FakeProcess& process : processes_) process.is_up = false;
  AddStream();
  RunUntil([&] { return pool_->moves().num_held == 1; });
  ProcessAt(streams_[0]->verifier->node().link.address).is_full = true;
  for (FakeProcess& process : processes_) process.is_up = true;
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(processes_[0].num_refused + processes_[1].num_refused, 1);
  EXPECT_EQ(processes_[0].num_moved + processes_[1].num_moved, 0);
}

}  // namespace
}  // namespace outrider
