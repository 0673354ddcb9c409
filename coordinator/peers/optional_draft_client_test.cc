// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/optional_draft_client.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/retry_delay.h"
#include "core/base/status_macros.h"
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
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OptionalDraftClientTest : public ::testing::Test {
 protected:
  ~OptionalDraftClientTest() override { RunTask(Stop(client_, session_)); }

  static Task<bool> Stop(OptionalDraftClient& client, Session& session) {
    co_await client.Stop(session);
    co_return true;
  }
  absl::StatusOr<Draft> Propose(int num_tokens = 2) {
    last_ = {};
    OUTRIDER_ASSIGN_OR_RETURN(last_,
                              RunTask(client_.Propose(session_, num_tokens)));
    return last_.draft;
  }
  // How many drafts a round has that drafts if it can.
  int NumDrafted() {
    const auto draft = Propose();
    EXPECT_THAT(draft, IsOk());
    return draft.ok() ? draft->length() : -1;
  }
  // The same, and it commits the drafts and a token.
  int Round() {
    const auto draft = Propose();
    EXPECT_THAT(draft, IsOk());
    session_.Commit(*draft, {draft->length(), 5});
    return draft->length();
  }
  void Fill() {
    EXPECT_EQ(NumDrafted(), 0);
    ASSERT_EQ(stub_.num_under_way, 0);
  }
  PlainReason reason() { return last_.plain_reason; }
  std::vector<int> asked() const {
    std::vector<int> asked;
    for (const DraftCall& call : stub_.calls) {
      asked.push_back(call.max_draft_tokens);
    }
    return asked;
  }

  ScriptedDrafter stub_;
  NodeDraftClient node_{stub_, {.context_length = 200}};
  CircuitBreaker breaker_;
  DraftLengthControl control_;
  OptionalDraftClient::Drafter drafter_ = {
      .node = node_, .breaker = breaker_, .control = control_};
  const OptionalDraftClient::Drafter* drafter_to_choose_ = &drafter_;
  OptionalDraftClient client_{
      [this](Session&) { return std::optional(*drafter_to_choose_); },
      DraftLengthMode::kFixed};
  Session session_{{.prompt = {1, 2}, .max_length = 1000}};
  ProposedDraft last_;
};

TEST_F(OptionalDraftClientTest, TheFirstRoundFillsTheDrafterAndDraftsNothing) {
  EXPECT_EQ(NumDrafted(), 0);
  EXPECT_EQ(reason(), PlainReason::kDrafterFills);
  EXPECT_THAT(asked(), ElementsAre(0));
  EXPECT_EQ(NumDrafted(), 2);
  EXPECT_EQ(reason(), PlainReason::kNone);
  EXPECT_THAT(asked(), ElementsAre(0, 2));
}

// The session decodes plainly, however long that takes, and nothing else is
// sent to the drafter meanwhile.
TEST_F(OptionalDraftClientTest, NoRoundWaitsForADrafterThatFills) {
  stub_.is_held = true;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(Round(), 0);
    EXPECT_EQ(reason(), PlainReason::kDrafterFills);
  }
  EXPECT_THAT(asked(), ElementsAre(0));
  stub_.is_held = false;
  stub_.Release();
  // It has the two tokens that it was sent; what came since is a second fill.
  EXPECT_EQ(Round(), 0);
  ASSERT_EQ(stub_.calls.size(), 2u);
  EXPECT_EQ(stub_.calls[1].header.delta.keep_length, 2);
  EXPECT_EQ(stub_.calls[1].header.delta.append_tokens.size(), 40u);
  EXPECT_FALSE(stub_.calls[1].header.incarnation.is_none());
  // And now it drafts, with the token of the last round on the way.
  EXPECT_EQ(Round(), 2);
  EXPECT_EQ(stub_.calls[2].header.delta.keep_length, 42);
  EXPECT_EQ(last_.link.num_misses(), 0);
}

TEST_F(OptionalDraftClientTest, AFewTokensAreTakenInOnTheWay) {
  Fill();
  for (int i = 0; i < 20; ++i) session_.Commit(Draft::None(2 + i), {0, 5});
  EXPECT_EQ(NumDrafted(), 2);
  EXPECT_THAT(asked(), ElementsAre(0, 2));
}

TEST_F(OptionalDraftClientTest, AskedForNothingItOnlyFills) {
  ASSERT_THAT(Propose(0), IsOk());
  ASSERT_THAT(Propose(0), IsOk());
  EXPECT_EQ(reason(), PlainReason::kNone);
  EXPECT_THAT(asked(), ElementsAre(0));
}

TEST_F(OptionalDraftClientTest, AFillUnderWayEndsWithTheSession) {
  stub_.is_held = true;
  EXPECT_EQ(NumDrafted(), 0);
  std::optional<bool> stopped;
  StartDetached(testing::StoreResult(Stop(client_, session_), stopped));
  EXPECT_TRUE(stub_.is_cancelled);
  EXPECT_FALSE(stopped.has_value());  // it waits until the call has ended
  stub_.Release();
  EXPECT_TRUE(stopped.has_value());
}

// Or its cache on the node could not be released.
TEST_F(OptionalDraftClientTest, AFillThatIsDoneAtTheEndIsTakenIn) {
  EXPECT_EQ(NumDrafted(), 0);
  RunTask(Stop(client_, session_));
  EXPECT_FALSE(session_.drafter_cache().incarnation().is_none());
}

TEST_F(OptionalDraftClientTest, ADrafterThatLostTheSessionIsFilledBesideIt) {
  Fill();
  EXPECT_EQ(Round(), 2);
  stub_.misses = true;
  EXPECT_EQ(NumDrafted(), 0);
  EXPECT_EQ(reason(), PlainReason::kDrafterFills);
  stub_.misses = false;
  EXPECT_THAT(asked(), ElementsAre(0, 2, 2, 0));
}

TEST_F(OptionalDraftClientTest, AFailureBecomesACountedPlainRound) {
  Fill();
  stub_.status = absl::DeadlineExceededError("no answer");
  EXPECT_EQ(NumDrafted(), 0);
  EXPECT_EQ(reason(), PlainReason::kDraftFailed);
  EXPECT_EQ(last_.link.num_failures, 1);
}

TEST_F(OptionalDraftClientTest, ADrafterThatKeepsFailingIsLeftAlone) {
  Fill();
  stub_.status = absl::UnavailableError("gone");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(NumDrafted(), 0);
    EXPECT_EQ(last_.link.num_failures, 1);
  }
  EXPECT_THAT(asked(), ElementsAre(0, 2, 2, 2));
  EXPECT_TRUE(breaker_.IsOpen(CircuitBreaker::Clock::now()));
}

TEST_F(OptionalDraftClientTest, AFillThatMissesShowsThatTheDrafterIsBack) {
  Fill();
  stub_.status = absl::UnavailableError("gone");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(NumDrafted(), 0);
  stub_.status = absl::OkStatus();
  stub_.misses = true;
  breaker_.Returned();
  for (int i = 0; i < 40; ++i) {
    session_.Commit(Draft::None(session_.length()), {0, 5});
  }
  EXPECT_EQ(NumDrafted(), 0);  // it probes with a fill
  EXPECT_EQ(NumDrafted(), 0);
  const auto now = CircuitBreaker::Clock::now();
  EXPECT_TRUE(breaker_.Allow(now));
  EXPECT_TRUE(breaker_.Allow(now));  // not as a probe
  stub_.misses = false;
  Fill();
  EXPECT_EQ(NumDrafted(), 2);
}

TEST_F(OptionalDraftClientTest, FillsThatKeepFailingCountToo) {
  stub_.status = absl::UnavailableError("gone");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(NumDrafted(), 0);
  EXPECT_EQ(stub_.calls.size(), 3u);
  EXPECT_TRUE(breaker_.IsOpen(CircuitBreaker::Clock::now()));
}

// What one session sent, its size or its cache: the others keep their drafter,
// while this one leaves it alone.
TEST_F(OptionalDraftClientTest, ASessionsOwnErrorsAreNoOtherSessions) {
  for (const absl::Status& status :
       {absl::InvalidArgumentError("token 9 is not in the vocabulary"),
        absl::ResourceExhaustedError("no memory for 5000 tokens"),
        absl::InternalError("a row is NaN")}) {
    ScriptedDrafter stub;
    stub.status = status;
    NodeDraftClient node(stub, {.context_length = 200});
    CircuitBreaker breaker;
    for (int session = 0; session < 6; ++session) {
      OptionalDraftClient client(
          [&](Session&) {
            return std::optional(OptionalDraftClient::Drafter{
                .node = node, .breaker = breaker, .control = control_});
          },
          DraftLengthMode::kFixed);
      Session bad({.prompt = {1, 2}, .max_length = 100});
      const size_t num_before = stub.calls.size();
      for (int i = 0; i < 20; ++i) {
        ASSERT_THAT(RunTask(client.Propose(bad, 2)), IsOk());
      }
      EXPECT_EQ(stub.calls.size() - num_before, 3u);
      EXPECT_FALSE(breaker.IsOpen(CircuitBreaker::Clock::now()));
      const auto permit = breaker.Allow(CircuitBreaker::Clock::now());
      EXPECT_TRUE(permit);
      breaker.Abandon(permit);
      RunTask(Stop(client, bad));
    }
  }
}

TEST_F(OptionalDraftClientTest, ADrafterThatKeepsLosingOneSessionServesOthers) {
  stub_.misses = true;
  for (int i = 0; i < 30; ++i) EXPECT_EQ(NumDrafted(), 0);
  EXPECT_EQ(stub_.calls.size(), 3u);
  EXPECT_FALSE(breaker_.IsOpen(CircuitBreaker::Clock::now()));
}

// A node that fails stays off, whatever sessions do that it could never serve.
TEST_F(OptionalDraftClientTest, ASessionBeyondTheContextSaysNothing) {
  for (int i = 0; i < 2; ++i) {
    breaker_.Failure(CircuitBreaker::Clock::now(), {});
  }
  Session longer({.prompt = TokenSeq(200, 1), .max_length = 1000});
  const auto draft = RunTask(client_.Propose(longer, 2));
  ASSERT_THAT(draft, IsOk());
  EXPECT_EQ(draft->draft.length(), 0);
  EXPECT_EQ(draft->draft.start, 200u);
  EXPECT_THAT(stub_.calls, IsEmpty());
  // The third failure in a row.
  breaker_.Failure(CircuitBreaker::Clock::now(), {});
  EXPECT_TRUE(breaker_.IsOpen(CircuitBreaker::Clock::now()));
}

// The session's stub knows when to ask again.
TEST_F(OptionalDraftClientTest, ARefusalIsNobodysFailure) {
  Fill();
  stub_.status = WithRetryDelay(absl::ResourceExhaustedError("queue is full"),
                                std::chrono::milliseconds(50));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(NumDrafted(), 0);
    EXPECT_EQ(last_.link.num_failures, 1);
  }
  stub_.status = absl::OkStatus();
  EXPECT_EQ(NumDrafted(), 2);
}

// What a drafter leaves that takes this long for two drafts; one stands.
RoundStats RoundOf(double draft_seconds) {
  return {.num_drafted = 2,
          .num_accepted = 1,
          .round_seconds = draft_seconds + 0.01,
          .drafter = {.call_seconds = draft_seconds,
                      .compute_seconds = draft_seconds},
          .verifier = {.call_seconds = 0.01, .compute_seconds = 0.01}};
}

// It is so though the request names K.
TEST_F(OptionalDraftClientTest, ADrafterThatIsFarTooSlowIsLeftAlone) {
  Fill();
  client_.Learn(RoundOf(0.5));  // takes in the prompt, which says nothing
  EXPECT_EQ(NumDrafted(), 2);
  client_.Learn(RoundOf(0.5));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(NumDrafted(), 0);
    EXPECT_EQ(reason(), PlainReason::kDrafterSlow);
  }
  EXPECT_THAT(asked(), ElementsAre(0, 2));
  EXPECT_EQ(last_.link.num_failures, 0);
}

// A session that held tells nothing of the verifier's pace to all the others.
TEST_F(OptionalDraftClientTest, RoundsWhoseVerifierFailedAreNotLearned) {
  Fill();
  RoundStats round = RoundOf(0.5);
  round.verifier.num_failures = 1;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(NumDrafted(), 2);
    client_.Learn(round);
  }
}

TEST_F(OptionalDraftClientTest, AFixedKStaysWhereItCostsALittle) {
  Fill();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(NumDrafted(), 2);
    client_.Learn(RoundOf(0.015));
  }
}

TEST_F(OptionalDraftClientTest, KByControlLearnsFromTheRoundsOfOtherSessions) {
  for (int i = 0; i < 200; ++i) {
    const auto choice = control_.Choose(8, DraftLengthMode::kAuto);
    RoundStats round = {
        .num_drafted = choice.num_drafts,
        .num_accepted = choice.num_drafts,
        .round_seconds = 0.1,
        .verifier = {.call_seconds = 0.1, .compute_seconds = 0.025}};
    control_.Learn(choice, round);
  }
  OptionalDraftClient client(
      [this](Session&) { return std::optional(drafter_); },
      DraftLengthMode::kAuto);
  ASSERT_THAT(RunTask(client.Propose(session_, 8)), IsOk());  // fills it
  const auto proposed = RunTask(client.Propose(session_, 8));
  ASSERT_THAT(proposed, IsOk());
  EXPECT_EQ(proposed->draft.length(), 8);
  RunTask(Stop(client, session_));
}

// What it says that it drafts at most is no sign that more would not stand.
TEST_F(OptionalDraftClientTest, DraftsBeyondItsLimitAreNotLearnedAsRefused) {
  NodeDraftClient node(stub_, {.context_length = 200, .max_draft_tokens = 1});
  OptionalDraftClient client(
      [&](Session&) {
        return std::optional(OptionalDraftClient::Drafter{
            .node = node, .breaker = breaker_, .control = control_});
      },
      DraftLengthMode::kAuto);
  for (int i = 0; i < 200; ++i) {
    const auto proposed = RunTask(client.Propose(session_, 8));
    ASSERT_THAT(proposed, IsOk());
    const int num_drafted = proposed->draft.length();
    EXPECT_LE(num_drafted, 1);
    client.Learn({.num_drafted = num_drafted,
                  .num_accepted = num_drafted,
                  .plain_reason = proposed->plain_reason,
                  .round_seconds = 0.1,
                  .verifier = {.call_seconds = 0.1, .compute_seconds = 0.025}});
  }
  // Another drafter of the same kind may take more.
  EXPECT_EQ(control_.Choose(8, DraftLengthMode::kAuto).num_drafts, 8);
  RunTask(Stop(client, session_));
}

// Plain rounds and looked-up drafts are no drafter's.
TEST_F(OptionalDraftClientTest, RoundsThatDidNotAskSayNothingOfItsPace) {
  Fill();
  client_.Learn(RoundOf(10));
  ASSERT_THAT(Propose(0), IsOk());
  client_.Learn(RoundOf(10));
  EXPECT_EQ(NumDrafted(), 2);
  EXPECT_EQ(reason(), PlainReason::kNone);
}

// Where one token is left the decoder does not propose.
TEST_F(OptionalDraftClientTest, ARoundThatProposedNothingTeachesNothing) {
  Fill();
  client_.Learn(RoundOf(0.01));
  EXPECT_EQ(NumDrafted(), 2);
  RoundStats round = RoundOf(0.01);
  round.num_drafted = round.num_accepted = 2;
  client_.Learn(round);
  const double acceptance = control_.Acceptance();
  client_.Learn(RoundOf(0.01));
  EXPECT_EQ(control_.Acceptance(), acceptance);
}

TEST_F(OptionalDraftClientTest, NoDrafterIsPlainDecodingAndNoFailure) {
  OptionalDraftClient client([](Session&) { return std::nullopt; },
                             DraftLengthMode::kFixed);
  const auto draft = RunTask(client.Propose(session_, 2));
  ASSERT_THAT(draft, IsOk());
  EXPECT_EQ(draft->draft.length(), 0);
  EXPECT_EQ(draft->link.num_failures, 0);
  EXPECT_EQ(draft->plain_reason, PlainReason::kNoDrafter);
  const auto not_asked = RunTask(client.Propose(session_, 0));
  ASSERT_THAT(not_asked, IsOk());
  EXPECT_EQ(not_asked->plain_reason, PlainReason::kNone);
  RunTask(Stop(client, session_));
}

TEST_F(OptionalDraftClientTest, ADrafterThatComesLaterDraftsFromThenOn) {
  bool is_there = false;
  OptionalDraftClient client(
      [&](Session&) {
        return is_there ? std::optional(drafter_) : std::nullopt;
      },
      DraftLengthMode::kFixed);
  const auto num_drafted = [&] {
    const auto proposed = RunTask(client.Propose(session_, 2));
    EXPECT_THAT(proposed, IsOk());
    return proposed.ok() ? proposed->draft.length() : -1;
  };
  EXPECT_EQ(num_drafted(), 0);
  EXPECT_FALSE(client.has_drafter());
  is_there = true;
  EXPECT_EQ(num_drafted(), 0);  // it takes in the text
  EXPECT_EQ(num_drafted(), 2);
  RunTask(Stop(client, session_));
}

TEST_F(OptionalDraftClientTest, WhatFailedAtOneDrafterIsNotHeldAgainstAnother) {
  ScriptedDrafter bad_stub;
  bad_stub.status = absl::InternalError("a row is NaN");
  NodeDraftClient bad(bad_stub, {.context_length = 200});
  CircuitBreaker bad_breaker;
  bool is_moved = false;
  OptionalDraftClient client(
      [&](Session&) {
        if (is_moved) return std::optional(drafter_);
        return std::optional(OptionalDraftClient::Drafter{
            .node = bad, .breaker = bad_breaker, .control = control_});
      },
      DraftLengthMode::kFixed);
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(RunTask(client.Propose(session_, 2)), IsOk());
  }
  EXPECT_EQ(bad_stub.calls.size(), 3u);
  is_moved = true;
  for (int i = 0; i < 2; ++i) {  // the last fill ends, and it fills the other
    ASSERT_THAT(RunTask(client.Propose(session_, 2)), IsOk());
  }
  const auto proposed = RunTask(client.Propose(session_, 2));
  ASSERT_THAT(proposed, IsOk());
  EXPECT_EQ(proposed->draft.length(), 2);
  RunTask(Stop(client, session_));
}

// One node has several where it comes back with another model.
TEST_F(OptionalDraftClientTest, RoundsOfOneControlAreNotNumberedForAnother) {
  const RoundStats round = {.num_drafted = 2,
                            .num_accepted = 2,
                            .round_seconds = 0.01,
                            .verifier = {.call_seconds = 0.005}};
  DraftLengthControl other;
  for (int i = 0; i < 300; ++i) other.Learn({.num_drafts = 2}, round);
  for (int i = 0; i < 20; ++i) {
    Round();
    client_.Learn(round);
  }
  ASSERT_FALSE(control_.MayHaveCompany());
  OptionalDraftClient::Drafter moved = {
      .node = node_, .breaker = breaker_, .control = other};
  drafter_to_choose_ = &moved;
  for (int i = 0; i < 3; ++i) {
    Round();
    client_.Learn(round);
  }
  EXPECT_FALSE(other.MayHaveCompany());
}

TEST_F(OptionalDraftClientTest, ACancelledCallSaysNothingOfTheDrafter) {
  Fill();
  stub_.status = absl::CancelledError("nobody waits");
  session_.cancellation().Cancel();
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(Propose(), StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_EQ(stub_.calls.size(), 6u);
  EXPECT_EQ(last_.link.num_failures, 0);
}

}  // namespace
}  // namespace outrider
