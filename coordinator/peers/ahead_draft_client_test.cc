// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/ahead_draft_client.h"

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/retry_delay.h"
#include "core/testing/run_task.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scripted_drafter.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::RunTask;
using ::outrider::testing::ScriptedDrafter;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Outcome = AheadStats::Outcome;

constexpr TokenId kInTurn = ScriptedDrafter::kInTurn;

class AheadDraftClientTest : public ::testing::Test {
 protected:
  explicit AheadDraftClientTest(Schedule schedule = Schedule::kPredraft,
                                int max_length = 60)
      : control_(schedule),
        client_(optional_, schedule),
        session_({.prompt = {1, 2}, .max_length = max_length}) {
    stub_.compute_seconds = 0.5;
    // The first round fills the drafter's cache.
    EXPECT_THAT(Draft(), IsEmpty());
    session_.Commit(Draft::None(session_.length()), {0, 3});
  }
  ~AheadDraftClientTest() override { RunTask(Stop()); }

  Task<bool> Stop() {
    co_await client_.Stop(session_);
    co_return true;
  }
  // A round's drafts, which are in flight then.
  TokenSeq Draft() {
    Begin();
    EXPECT_TRUE(proposed_.has_value());
    return End();
  }
  void Begin() {
    proposed_.reset();
    StartDetached(Propose());
  }
  bool waits() const { return !proposed_.has_value(); }
  TokenSeq End() {
    if (!proposed_.has_value() || !proposed_->ok()) return {-1};
    draft_ = (*proposed_)->draft;
    stats_ = (*proposed_)->ahead;
    link_ = (*proposed_)->link;
    client_.DraftAhead(session_, draft_);
    return draft_.tokens;
  }
  void Commit(int num_accepted, TokenId next) {
    session_.Commit(draft_, {num_accepted, next});
    client_.Learn({.num_drafted = draft_.length(),
                   .num_accepted = num_accepted,
                   .ahead = stats_,
                   .round_seconds = verify_seconds_,
                   .verifier = {.call_seconds = verify_seconds_,
                                .compute_seconds = verify_seconds_}});
  }
  Task<void> Propose() {
    proposed_.emplace(co_await client_.Propose(session_, k_));
  }

  int k_ = 2;
  double verify_seconds_ = 1;
  ScriptedDrafter stub_;
  NodeDraftClient node_{stub_, {.context_length = 200, .max_outcomes = 4}};
  CircuitBreaker breaker_;
  DraftLengthControl control_;
  OptionalDraftClient optional_{
      [this](Session&) {
        return std::optional(OptionalDraftClient::Drafter{
            .node = node_, .breaker = breaker_, .control = control_});
      },
      DraftLengthMode::kFixed};
  AheadDraftClient client_;
  Session session_;
  std::optional<absl::StatusOr<ProposedDraft>> proposed_;
  outrider::Draft draft_;
  AheadStats stats_;
  RoundStats::Link link_;
};

class DraftAheadTest : public AheadDraftClientTest {
 protected:
  DraftAheadTest() : AheadDraftClientTest(Schedule::kAhead) {}
};

class AutoAheadTest : public AheadDraftClientTest {
 protected:
  AutoAheadTest() : AheadDraftClientTest(Schedule::kAuto, /*max_length=*/150) {}
};

TEST_F(AheadDraftClientTest, AsksForWhatMayFollowTheDraftsInFlight) {
  EXPECT_THAT(Draft(), ElementsAre(kInTurn, kInTurn));
  ASSERT_EQ(stub_.ahead().size(), 1u);
  const DraftCall call = stub_.ahead()[0];
  EXPECT_THAT(call.in_flight_tokens, ElementsAre(kInTurn, kInTurn));
  EXPECT_EQ(call.header.delta.length(), 3u);
  EXPECT_EQ(call.max_draft_tokens, 2);
  EXPECT_EQ(call.max_outcomes, 4);
  EXPECT_GT(call.acceptance, 0);
  EXPECT_LT(call.acceptance, 1);
  // Each outcome has a step of its own.
  EXPECT_GE(session_.AdvisoryHeader(session_.verifier_cache()).step,
            call.header.step + 4);
}

TEST_F(AheadDraftClientTest, AHitIsTheNextRoundsDraftWithoutACall) {
  stub_.outcomes = {{2, 8}, {1, 9}, {0, 9}};
  Draft();
  Commit(1, 9);
  const size_t num_calls = stub_.calls.size();
  Begin();
  EXPECT_EQ(stub_.calls.size(), num_calls);
  EXPECT_THAT(End(), ElementsAre(51, 51));
  EXPECT_EQ(draft_.start, 5u);
  EXPECT_EQ(stats_.outcome, Outcome::kHit);
  EXPECT_FALSE(stats_.all_stood);
  EXPECT_EQ(stats_.num_drafted, 6);
  EXPECT_EQ(stats_.num_outcomes, 3);
  EXPECT_EQ(stats_.longest, 2);
  EXPECT_EQ(stats_.compute_seconds, 0.5);
  EXPECT_EQ(link_.compute_seconds, 0);  // that nobody waited for
}

TEST_F(AheadDraftClientTest, AnyOtherVerdictIsAMissAndDraftedInTurn) {
  stub_.outcomes = {{2, 8}, {1, 9}, {0, 9}};
  for (const auto& [num_accepted, next] :
       std::vector<std::pair<int, TokenId>>{{2, 9}, {1, 8}, {0, 8}}) {
    Draft();
    Commit(num_accepted, next);
    EXPECT_THAT(Draft(), ElementsAre(kInTurn, kInTurn));
    EXPECT_EQ(stats_.outcome, Outcome::kMiss);
    EXPECT_EQ(stats_.all_stood, num_accepted == 2);
    EXPECT_EQ(stats_.num_accepted, num_accepted);
    EXPECT_EQ(stats_.num_drafted, 6);
    Commit(0, 7);
  }
}

// Dropping what is late would change the output's law.
TEST_F(AheadDraftClientTest, WhatMayBeAHitIsWaitedForHoweverLateItIs) {
  stub_.outcomes = {{0, 9}};
  stub_.is_held = true;
  Begin();
  stub_.Release();
  End();
  Commit(0, 9);
  Begin();
  EXPECT_TRUE(waits());
  EXPECT_FALSE(stub_.is_cancelled);
  stub_.is_held = false;
  stub_.Release();
  EXPECT_THAT(End(), ElementsAre(50, 50));
  EXPECT_EQ(stats_.outcome, Outcome::kHit);
}

TEST_F(AheadDraftClientTest, ACancelledSessionWaitsForNothing) {
  stub_.is_held = true;
  Begin();
  stub_.Release();
  End();
  Commit(0, 9);
  Begin();
  session_.cancellation().Cancel();
  EXPECT_TRUE(stub_.is_cancelled);
  stub_.is_held = false;
  stub_.Release();
  EXPECT_FALSE(waits());
}

TEST_F(AheadDraftClientTest, ADrafterThatFailsAheadIsAFailureOfTheRound) {
  Draft();
  Commit(0, 9);
  stub_.is_held = true;
  Begin();
  stub_.Release();
  End();
  stub_.status = absl::UnavailableError("it is gone");
  stub_.is_held = false;
  stub_.Release();
  stub_.status = absl::OkStatus();
  Commit(0, 9);
  EXPECT_THAT(Draft(), ElementsAre(kInTurn, kInTurn));
  EXPECT_EQ(stats_.outcome, Outcome::kMiss);
  EXPECT_EQ(stats_.num_drafted, 0);
  EXPECT_EQ(link_.num_failures, 1);
}

// It drafts in turn as ever, which is no reason to ask for it all the same.
TEST_F(AheadDraftClientTest, ADrafterThatFailsAheadIsSoonLeftAloneWithIt) {
  stub_.ahead_status = absl::InternalError("its rows are no logits");
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Draft(), ElementsAre(kInTurn, kInTurn));
    Commit(0, 9);
  }
  EXPECT_EQ(stub_.ahead().size(), 3u);
  EXPECT_EQ(link_.num_failures, 0);
}

TEST_F(AheadDraftClientTest, ADrafterThatIsTooBusyForItHasNotFailed) {
  stub_.ahead_status = WithRetryDelay(absl::ResourceExhaustedError("is busy"),
                                      std::chrono::milliseconds(1));
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Draft(), ElementsAre(kInTurn, kInTurn));
    Commit(0, 9);
    EXPECT_EQ(link_.num_failures, 0);
    EXPECT_EQ(stats_.outcome, Outcome::kNotAsked);
  }
  EXPECT_EQ(stub_.ahead().size(), 20u);
  stub_.ahead_status = absl::OkStatus();
  stub_.outcomes = {{0, 9}};
  Draft();
  Commit(0, 9);
  EXPECT_THAT(Draft(), ElementsAre(50, 50));
}

// Whatever was refused is cut, however late the drafter's answer is taken in.
TEST_F(AheadDraftClientTest,
       TheMirrorEndsWhereTheTextAndTheDraftsInFlightPart) {
  for (const int num_accepted : {0, 1, 2}) {
    Draft();
    const int length = session_.length();
    Commit(num_accepted, 9);
    Draft();
    const CacheDelta& delta = stub_.calls[stub_.calls.size() - 2].header.delta;
    EXPECT_EQ(delta.keep_length, length + num_accepted);
    EXPECT_THAT(delta.append_tokens, ElementsAre(9));
    Commit(0, 7);
  }
}

// It may have cut its cache for that call, and been told to give it up before
// it had run the drafts in flight.
TEST_F(AheadDraftClientTest, WhatADrafterGaveUpMayHaveCostItTheDraftsInFlight) {
  stub_.is_held = true;
  Begin();
  stub_.Release();
  End();
  const size_t num_calls = stub_.calls.size();
  const int kept = stub_.calls.back().header.delta.keep_length;
  EXPECT_GT(session_.drafter_cache().length(), kept);
  Commit(1, 9);
  k_ = 0;
  Begin();
  EXPECT_TRUE(stub_.is_cancelled);
  stub_.is_held = false;
  stub_.Release();
  End();
  Commit(0, 9);
  k_ = 2;
  Draft();
  EXPECT_EQ(stub_.calls.at(num_calls).header.delta.keep_length, kept);
}

// Nothing is drafted in turn then: what the drafter holds is what it took in
// ahead.
TEST_F(AheadDraftClientTest, HitAfterHitAppendsOnlyTheTokenOfTheVerdict) {
  stub_.outcomes = {{2, 9}, {1, 9}};
  Draft();
  Commit(2, 9);
  for (const int num_accepted : {1, 2, 1, 2}) {
    Draft();
    EXPECT_EQ(stats_.outcome, Outcome::kHit);
    const DraftCall call = stub_.calls.back();
    EXPECT_EQ(call.in_flight_tokens, draft_.tokens);
    EXPECT_THAT(call.header.delta.append_tokens, ElementsAre(9));
    Commit(num_accepted, 9);
  }
}

TEST_F(AheadDraftClientTest, AHitIsCutToWhatTheTextHasRoomFor) {
  stub_.outcomes = {{0, 9}};
  k_ = 4;
  Draft();
  Commit(0, 9);
  k_ = 3;
  EXPECT_THAT(Draft(), ElementsAre(50, 50, 50));
}

// Only a lookup asks so: what was drafted ahead is of no use then.
TEST_F(AheadDraftClientTest, ARoundThatWantsNoDraftsGivesUpWhatWasAsked) {
  stub_.is_held = true;
  Begin();
  stub_.Release();
  End();
  Commit(0, 9);
  k_ = 0;
  Begin();
  EXPECT_TRUE(stub_.is_cancelled);
  stub_.is_held = false;
  stub_.Release();
  EXPECT_THAT(End(), IsEmpty());
}

TEST_F(AheadDraftClientTest, WithoutDraftsInFlightNothingIsAsked) {
  client_.DraftAhead(session_, Draft::None(session_.length()));
  EXPECT_THAT(stub_.ahead(), IsEmpty());
}

TEST_F(AheadDraftClientTest, ARoundThatFailedIsNoOutcome) {
  stub_.outcomes = {{0, 9}};
  Draft();
  EXPECT_THAT(Draft(), ElementsAre(kInTurn, kInTurn));
  EXPECT_EQ(stats_.outcome, Outcome::kMiss);
}

// Both nodes on one processor, say.
TEST_F(AutoAheadTest, LeavesItWhereVerificationTakesLongerMeanwhile) {
  size_t num_asked = 0;
  for (int i = 0; i < 110; ++i) {
    const size_t before = stub_.ahead().size();
    Draft();
    verify_seconds_ = stub_.ahead().size() > before ? 3 : 1;
    Commit(0, 9);
    if (i == 80) num_asked = stub_.ahead().size();
  }
  EXPECT_GT(num_asked, 0u);
  EXPECT_EQ(stub_.ahead().size(), num_asked);
}

TEST_F(DraftAheadTest, AsksForOneOutcomeWhereAllStand) {
  Draft();
  ASSERT_EQ(stub_.ahead().size(), 1u);
  EXPECT_EQ(stub_.ahead()[0].max_outcomes, 1);
  EXPECT_EQ(stub_.ahead()[0].acceptance, 1);
}

// It is known, before the answer is, that no draft of it can be used.
TEST_F(DraftAheadTest, IsGivenUpOnceADraftIsRefused) {
  stub_.is_held = true;
  Begin();
  stub_.Release();
  End();
  Commit(1, 9);
  Begin();
  EXPECT_TRUE(stub_.is_cancelled);
  stub_.is_held = false;
  stub_.Release();
  EXPECT_THAT(End(), ElementsAre(kInTurn, kInTurn));
  EXPECT_EQ(link_.num_failures, 0);
}

TEST_F(DraftAheadTest, IsWaitedForWhereAllStand) {
  stub_.outcomes = {{2, 9}};
  stub_.is_held = true;
  Begin();
  stub_.Release();
  End();
  Commit(2, 9);
  Begin();
  EXPECT_TRUE(waits());
  EXPECT_FALSE(stub_.is_cancelled);
  stub_.is_held = false;
  stub_.Release();
  EXPECT_THAT(End(), ElementsAre(50, 50));
}

}  // namespace
}  // namespace outrider
