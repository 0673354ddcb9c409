// SPDX-License-Identifier: Apache-2.0
// Drafters that die under the calls of sessions, in virtual time.
#include "coordinator/nodes/session_drafter.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/cancellation.h"
#include "core/base/retry_delay.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"
#include "tests/support/fake_drafters.h"
#include "tests/support/fake_verifier.h"

namespace outrider {
namespace {

using ::outrider::testing::DrafterPool;
using ::outrider::testing::DrafterProcess;
using ::outrider::testing::EventLoop;
using ::outrider::testing::FakeProcess;
using std::chrono::milliseconds;

class SessionDrafterTest : public ::testing::Test {
 protected:
  struct Stream {
    Stream(SessionPool& pool, const SessionId& id)
        : session({.id = id, .prompt = {1, 2}, .max_length = 100000}),
          drafter(pool, id, pool.ChooseDrafter(id, {})) {}

    Session session;
    SessionDrafter drafter;
    OptionalDraftClient client{[this](Session& of) {
                                 return drafter.Choose(of, /*drafting=*/{},
                                                       Schedule::kSequential);
                               },
                               DraftLengthMode::kFixed};
    int num_drafts = 0;  // of its last round
    int num_failures = 0;
    bool is_done = false;
  };

  ~SessionDrafterTest() override {
    pool_->is_closed = true;
    while (loop_.RunOne()) {
    }
  }
  void Start(size_t num_drafters, int num_streams) {
    drafters_.resize(num_drafters);
    pool_ = std::make_unique<DrafterPool>(loop_, verifiers_, drafters_);
    for (int i = 0; i < num_streams; ++i) AddStream();
  }
  Stream& AddStream() {
    const auto id = SessionId::FromBytes(
        absl::StrCat(1000 + streams_.size(), "abcdefghijkl"));
    streams_.push_back(std::make_unique<Stream>(*pool_, id));
    StartDetached(Run(*streams_.back()));
    return *streams_.back();
  }
  void Poison(const Stream& stream, int from) {
    for (DrafterProcess& process : drafters_) {
      process.poison = stream.session.id();
      process.poison_from = from;
    }
  }
  int NumDeaths() const {
    int sum = 0;
    for (const DrafterProcess& process : drafters_) sum += process.num_deaths;
    return sum;
  }
  template <typename Condition>
  void RunUntil(Condition condition) {
    while (!condition()) ASSERT_TRUE(loop_.RunOne());
  }
  void RunFor(milliseconds time) {
    const auto end = loop_.elapsed() + time;
    RunUntil([&] { return loop_.elapsed() >= end; });
  }
  // What comes of a call of a session that no stream runs.
  absl::Status StatusOf(SessionDrafter& drafter, const DraftCall& call) {
    std::optional<absl::Status> status;
    StartDetached(Ask(drafter, call, status));
    RunUntil([&] { return status.has_value(); });
    return *status;
  }
  int NumDrafting() const {
    return static_cast<int>(
        std::count_if(streams_.begin(), streams_.end(),
                      [](const auto& one) { return one->num_drafts > 0; }));
  }

  // What a session asks for that no stream runs.
  const SessionId id_ = SessionId::FromBytes("0123456789abcdef");
  const DraftCall call_ = {
      .header = {.session = id_, .delta = {.append_tokens = {1, 2}}},
      .max_draft_tokens = 1};
  EventLoop loop_;
  Cancellation none_;
  std::vector<FakeProcess> verifiers_;
  std::vector<DrafterProcess> drafters_;
  std::unique_ptr<DrafterPool> pool_;
  std::vector<std::unique_ptr<Stream>> streams_;

 private:
  Task<void> Ask(SessionDrafter& drafter, const DraftCall& call,
                 std::optional<absl::Status>& status) {
    const auto reply = co_await drafter.Draft(call, none_);
    status = reply.status();
  }
  Task<void> Run(Stream& stream) {
    while (!pool_->is_closed) {
      const auto proposed = co_await stream.client.Propose(stream.session, 2);
      EXPECT_TRUE(proposed.ok());
      stream.num_drafts = proposed->draft.length();
      stream.num_failures += proposed->link.num_failures;
      stream.session.Commit(proposed->draft, {stream.num_drafts, 5});
      co_await loop_.Sleep(milliseconds(5));  // its verification
    }
    co_await stream.client.Stop(stream.session);
    stream.drafter.Release(
        stream.session.AdvisoryHeader(stream.session.drafter_cache()));
  }
};

TEST_F(SessionDrafterTest, ARequestThatTakesDraftersDownTakesTwo) {
  Start(/*num_drafters=*/3, /*num_streams=*/20);
  Stream& poison = AddStream();
  Poison(poison, /*from=*/100);
  RunFor(std::chrono::seconds(20));
  EXPECT_GT(poison.session.length(), 1000);
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_EQ(NumDrafting(), 20);
  EXPECT_EQ(poison.num_drafts, 0);
}

TEST_F(SessionDrafterTest, TheOnlyDrafterIsTakenTwice) {
  Start(/*num_drafters=*/1, /*num_streams=*/10);
  // It comes in their midst, so that others are there beside it.
  Poison(AddStream(), /*from=*/100);
  for (int i = 0; i < 10; ++i) AddStream();
  RunFor(std::chrono::seconds(20));
  EXPECT_EQ(NumDeaths(), 2);
  // It is one of the few that were there.
  EXPECT_GE(NumDrafting(), 21 - SuspectPlaces::kMost);
  EXPECT_EQ(streams_[10]->num_drafts, 0);
  EXPECT_EQ(pool_->moves().num_undrafted, 21 - NumDrafting());
}

TEST_F(SessionDrafterTest, WhoHasAnsweredInBetweenIsNotHeldToAccount) {
  Start(/*num_drafters=*/1, /*num_streams=*/20);
  for (int i = 0; i < 5; ++i) {
    RunFor(std::chrono::seconds(5));
    EXPECT_EQ(NumDrafting(), 20);
    drafters_[0].Die();
    RunFor(milliseconds(500));
    EXPECT_EQ(NumDrafting(), 0);
    drafters_[0].is_up = true;
  }
  RunFor(std::chrono::seconds(5));
  EXPECT_EQ(NumDrafting(), 20);
}

// All are suspects after a loss under all their calls.
TEST_F(SessionDrafterTest, SuspectsComeAFewAtATimeAndSoonAllHave) {
  Start(/*num_drafters=*/1, /*num_streams=*/100);
  RunFor(std::chrono::seconds(5));
  drafters_[0].Die();
  RunFor(milliseconds(500));
  EXPECT_EQ(drafters_[0].suspects.size(), 100);
  drafters_[0].is_up = true;
  RunFor(milliseconds(1000));
  EXPECT_EQ(drafters_[0].most_suspects_in_flight, SuspectPlaces::kMost);
  EXPECT_EQ(drafters_[0].suspects.size(), 0);
  EXPECT_EQ(NumDrafting(), 100);
}

// A drafter that drains ends when its time is over, whoever still calls.
TEST_F(SessionDrafterTest, WhatEndsAsItSaidMakesNoSuspects) {
  Start(/*num_drafters=*/1, /*num_streams=*/20);
  RunFor(std::chrono::seconds(5));
  drafters_[0].is_draining = true;
  RunFor(milliseconds(100));
  drafters_[0].Die();
  RunFor(milliseconds(500));
  EXPECT_EQ(drafters_[0].suspects.size(), 20);  // by their broken calls alone
  drafters_[0].is_draining = false;
  drafters_[0].is_up = true;
  RunFor(std::chrono::seconds(5));
  EXPECT_GT(drafters_[0].most_suspects_in_flight, SuspectPlaces::kMost);
  EXPECT_EQ(NumDrafting(), 20);
}

// How long a pass takes may follow from what is drafted, so that alone must
// lose no draft (docs/algorithm.md, "The clock").
TEST_F(SessionDrafterTest, WhoIsSlowAndSaysWhatItIsIsWaitedFor) {
  Start(/*num_drafters=*/2, /*num_streams=*/1);
  RunFor(std::chrono::seconds(1));
  for (DrafterProcess& drafter : drafters_) drafter.pass = milliseconds(5000);
  RunFor(std::chrono::seconds(12));
  EXPECT_EQ(streams_[0]->num_failures, 0);
  EXPECT_EQ(streams_[0]->num_drafts, 2);
}

TEST_F(SessionDrafterTest, WhoAnswersNothingAtAllIsNotWaitedFor) {
  Start(/*num_drafters=*/2, /*num_streams=*/2);
  RunFor(std::chrono::seconds(1));
  drafters_[0].is_silent = true;
  RunFor(std::chrono::seconds(1));
  EXPECT_EQ(streams_[0]->num_failures + streams_[1]->num_failures, 1);
}

TEST_F(SessionDrafterTest, WhoComesBackWithALowerLimitIsAskedForNoMore) {
  Start(/*num_drafters=*/1, /*num_streams=*/1);
  RunFor(std::chrono::seconds(1));
  ASSERT_EQ(streams_[0]->num_drafts, 2);
  drafters_[0].Die();
  drafters_[0].max_draft_tokens = 1;
  RunFor(milliseconds(300));
  drafters_[0].is_up = true;
  RunFor(std::chrono::seconds(4));
  EXPECT_EQ(streams_[0]->num_drafts, 1);
  EXPECT_LE(drafters_[0].num_refusals, 3);
}

TEST_F(SessionDrafterTest, WhatItRefusesOfOneSessionIsNotTriedAtAnother) {
  Start(/*num_drafters=*/2, /*num_streams=*/0);
  RunFor(milliseconds(500));
  SessionDrafter drafter(*pool_, id_, pool_->ChooseDrafter(id_, {}));
  const DrafterNode* const node = &drafter.node();
  DraftCall too_long = call_;
  too_long.max_draft_tokens = 5;
  Session session({.id = id_, .prompt = {1, 2}, .max_length = 100});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(drafter, too_long)));
    RunFor(milliseconds(100));
    drafter.Choose(session, /*drafting=*/{}, Schedule::kSequential);
    EXPECT_EQ(&drafter.node(), node);
  }
}

// Drafts made ahead are what it can spare: that it cannot spare any now says
// nothing of those that a round waits for.
TEST_F(SessionDrafterTest, WhoIsTooBusyToDraftAheadIsStillAskedInTurn) {
  Start(1, 0);
  RunFor(milliseconds(500));
  drafters_[0].refuses_ahead = true;
  SessionDrafter drafter(*pool_, id_, pool_->ChooseDrafter(id_, {}));
  DraftCall ahead = call_;
  ahead.in_flight_tokens = {3};
  ahead.max_outcomes = 4;
  EXPECT_TRUE(IsRefusal(StatusOf(drafter, ahead)));
  EXPECT_TRUE(StatusOf(drafter, call_).ok());
  EXPECT_TRUE(IsRefusal(StatusOf(drafter, ahead)));
  EXPECT_EQ(drafters_[0].num_refusals, 1);  // the second was not sent
  RunFor(milliseconds(2000));
  drafters_[0].refuses_ahead = false;
  EXPECT_TRUE(StatusOf(drafter, ahead).ok());
}

// The rounds in between need not try.
TEST_F(SessionDrafterTest, ASuspectThatFindsNoPlaceAsksAgainAfterAWhile) {
  Start(/*num_drafters=*/1, /*num_streams=*/0);
  RunFor(milliseconds(500));
  SessionDrafter drafter(*pool_, id_, pool_->ChooseDrafter(id_, {}));
  loop_.After(milliseconds(1), [this] { drafters_[0].Die(); });
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(drafter, call_)));
  drafters_[0].is_up = true;
  RunFor(milliseconds(500));
  auto other = pool_->ChooseDrafter(id_, {});
  std::vector<SuspectPlaces::Place> taken;
  for (int i = 0; i < SuspectPlaces::kMost; ++i) {
    taken.push_back(other.seat->suspects.Take());
  }
  EXPECT_TRUE(IsRefusal(StatusOf(drafter, call_)));
  taken.clear();
  loop_.After(milliseconds(40), [] {});
  RunFor(milliseconds(40));
  EXPECT_TRUE(IsRefusal(StatusOf(drafter, call_)));
  RunFor(milliseconds(20));
  EXPECT_TRUE(StatusOf(drafter, call_).ok());
}

// Each refusal has let a round wait.
TEST_F(SessionDrafterTest, AFullDrafterIsAskedLessAndLessOften) {
  Start(1, 0);
  RunFor(milliseconds(500));
  SessionDrafter drafter(*pool_, id_, pool_->ChooseDrafter(id_, {}));
  const auto num_refusals_in = [&](milliseconds time) {
    const int before = drafters_[0].num_refusals;
    for (const auto end = loop_.elapsed() + time; loop_.elapsed() < end;) {
      EXPECT_TRUE(IsRefusal(StatusOf(drafter, call_)));
      loop_.After(milliseconds(10), [] {});
      RunFor(milliseconds(10));
    }
    return drafters_[0].num_refusals - before;
  };
  drafters_[0].is_full = true;
  EXPECT_EQ(num_refusals_in(milliseconds(1400)), 2);
  EXPECT_LE(num_refusals_in(std::chrono::seconds(20)), 6);
  RunFor(milliseconds(7500));  // which is the longest
  drafters_[0].is_full = false;
  EXPECT_TRUE(StatusOf(drafter, call_).ok());
  drafters_[0].is_full = true;
  EXPECT_EQ(num_refusals_in(milliseconds(1400)), 2);
}

}  // namespace
}  // namespace outrider
