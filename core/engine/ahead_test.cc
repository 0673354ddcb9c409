// SPDX-License-Identifier: Apache-2.0
// Work ahead: after all other work, on branches of its own, and ended by what
// is newer.
#include <chrono>
#include <vector>

#include "core/base/retry_delay.h"
#include "core/testing/scheduler_test.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Id;
using ::outrider::testing::IsOk;
using ::outrider::testing::SchedulerTest;
using ::outrider::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class AheadTest : public SchedulerTest {
 protected:
  using SchedulerTest::SchedulerTest;

  void SubmitAhead(int name, int num_tokens, Script script = {}) {
    script.is_ahead = true;
    Submit(name, num_tokens, std::move(script));
  }
  // Passes have shown that one takes 100 ms, and 10 for each row.
  void LearnPassTime() {
    for (const int num_tokens : {1, 11}) {
      Submit(9, num_tokens);
      RunPass(milliseconds(100 + 10 * num_tokens));
    }
    scheduler_.Release(Header(9, 0));
    endings_.clear();
  }
  const KvBlockPool& pool() const { return scheduler_.sessions().blocks(); }
};

TEST_F(AheadTest, ItJoinsAPassAsFarAsItsRowsCostTheOthersLittle) {
  OpenAll({1, 2, 3, 4});
  LearnPassTime();
  SubmitAhead(2, 3);
  SubmitAhead(3, 3);
  SubmitAhead(4, 2);
  Submit(1, 2);
  // Five rows take half of what a pass costs besides its rows. Nobody overtakes
  // who was there before.
  EXPECT_THAT(RunPass(milliseconds(150)), ElementsAre(Pair(1, 2), Pair(2, 3)));
  EXPECT_THAT(RunPass(milliseconds(150)), ElementsAre(Pair(3, 3), Pair(4, 2)));
}

TEST_F(AheadTest, ManyRowsWaitUntilAllOthersHaveHadTheirs) {
  OpenAll({1, 2});
  LearnPassTime();
  SubmitAhead(2, 8);
  Submit(1, 1, {.num_more = 2});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 8)));
}

// Whoever adds nodes by how many wait would add them for nobody.
TEST_F(AheadTest, ItIsNotCountedAmongThoseWhoWait) {
  OpenAll({1, 2, 3});
  LearnPassTime();
  SubmitAhead(2, 8);
  SubmitAhead(3, 30);  // taken in as a prompt is
  EXPECT_EQ(scheduler_.metrics().num_waiting, 0);
  Submit(1, 1);
  EXPECT_EQ(scheduler_.metrics().num_waiting, 1);
}

// Four are to have four drafts each; the others' drafts are being verified.
TEST_F(AheadTest, OfEightUsersNobodyIsDraftedForAheadBeforeAllAreInTurn) {
  OpenAll({1, 2, 3, 4, 5, 6, 7, 8});
  LearnPassTime();
  for (const int name : {5, 6, 7, 8}) SubmitAhead(name, 8);
  for (const int name : {1, 2, 3, 4}) Submit(name, 1, {.num_more = 3});
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(RunPass(milliseconds(140)),
                ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(4, 1)));
  }
  EXPECT_THAT(StatusOf(4), IsOk());
  EXPECT_THAT(RunPass(milliseconds(420)),
              ElementsAre(Pair(5, 8), Pair(6, 8), Pair(7, 8), Pair(8, 8)));
}

TEST_F(AheadTest, NobodyIsPassedOverMoreThanFourTimes) {
  OpenAll({1, 2, 3});
  LearnPassTime();
  SubmitAhead(2, 8);
  SubmitAhead(3, 8);
  Submit(1, 1, {.num_more = 20});
  for (const int name : {2, 3}) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_THAT(RunPass(milliseconds(110)), ElementsAre(Pair(1, 1)));
    }
    EXPECT_THAT(RunPass(milliseconds(190)),
                ElementsAre(Pair(1, 1), Pair(name, 8)));
  }
}

TEST_F(AheadTest, BranchesAreInOnePassAndEndWithTheCall) {
  OpenAll({1});
  const int num_free = pool().num_free();
  SubmitAhead(1, 20, {.num_more = 3, .num_branches = 4});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 20)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(scheduler_.sessions().Find(Id(1))->branches.size(), 4u);
    EXPECT_EQ(pool().num_shared(), 1);
    EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 4)));
  }
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(scheduler_.sessions().Find(Id(1))->log.length(), 21);
  EXPECT_EQ(pool().num_free(), num_free - 1);
  EXPECT_EQ(scheduler_.metrics().num_branches, 4);
}

TEST_F(AheadTest, BranchesGoWithWhateverEndsTheCall) {
  for (const int ending : {0, 1, 2, 3}) {
    SCOPED_TRACE(ending);
    OpenAll({1});
    SubmitAhead(1, 20, {.num_more = 3, .num_branches = 4});
    RunPass();
    RunPass();
    if (ending == 0) cancelled_ = {1};
    if (ending == 1) scheduler_.Release(Header(1, 0));
    if (ending == 2) results_[1] = absl::InternalError("not a number");
    if (ending == 3) Submit(1, 1);
    RunPass();
    RunPass();
    EXPECT_EQ(pool().num_shared(), 0);
    EXPECT_FALSE(ending == 2 && StatusOf(1).ok());
    cancelled_.clear();
    results_.clear();
    if (ending == 0 || ending == 3) scheduler_.Release(Header(1, 0));
    EXPECT_EQ(pool().num_free(), pool().num_total());
  }
}

TEST_F(AheadTest, WhatWasDraftedForACallThatIsGivenUpIsCounted) {
  const auto num_given_up = [this] {
    return scheduler_.metrics().num_tokens_given_up.load();
  };
  OpenAll({1});
  const Script script = {.num_more = 3, .num_branches = 4};
  // One that is awaited, and is no waste that this node could tell.
  SubmitAhead(1, 20, script);
  for (int i = 0; i < 4; ++i) RunPass();
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(num_given_up(), 0);
  // Its drafts have two tokens each, and it is one that nobody reads.
  SubmitAhead(1, 20, script);
  for (int i = 0; i < 3; ++i) RunPass();
  cancelled_ = {1};
  RunPass();
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(num_given_up(), 8);
  cancelled_.clear();
  SubmitAhead(1, 20, script);
  for (int i = 0; i < 2; ++i) RunPass();
  Submit(1, 1);
  EXPECT_EQ(scheduler_.metrics().num_superseded, 1);
  EXPECT_EQ(num_given_up(), 12);
  RunPass();
  // Its last rows are there before anybody looks.
  SubmitAhead(1, 20, script);
  for (int i = 0; i < 3; ++i) RunPass();
  const Pass* const pass = NextPass();
  ASSERT_NE(pass, nullptr);
  cancelled_ = {1};
  scheduler_.EndPass(PassResults(4, LogitRows()), now_);
  TakeAll();
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(num_given_up(), 24);
}

TEST_F(AheadTest, ANewerStepEndsItAtOnce) {
  OpenAll({1});
  SubmitAhead(1, 3, {.num_more = 5});
  RunPass();
  RunPass();
  Submit(1, 1);
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(scheduler_.metrics().num_superseded, 1);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(StatusOf(1), IsOk());
}

TEST_F(AheadTest, ANewerStepThatComesDuringItsPassEndsItAfterThat) {
  OpenAll({1});
  SubmitAhead(1, 3, {.num_more = 5});
  const Pass* const pass = NextPass();
  ASSERT_NE(pass, nullptr);
  RequestHeader newer = Header(1, 1);
  newer.delta.keep_length = 1;
  Submit(newer);
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
  scheduler_.EndPass(PassResults(1, LogitRows()), now_);
  TakeAll();
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(scheduler_.metrics().num_superseded, 1);
}

TEST_F(AheadTest, NeitherTheSameStepNorAnOlderOneNorAStrangerEndsIt) {
  OpenAll({1});
  const RequestHeader older = Header(1, 1);
  const RequestHeader header = Header(1, 1);
  RequestHeader stranger = Header(1, 1);
  stranger.incarnation = Id(77);
  Submit(header, {.num_more = 2, .is_ahead = true});
  RunPass();
  for (const RequestHeader& other : {header, older, stranger}) Submit(other);
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_EQ(scheduler_.metrics().num_superseded, 0);
}

TEST_F(AheadTest, WorkThatIsNotAheadIsNotEndedByANewerStep) {
  OpenAll({1});
  Submit(1, 1, {.num_more = 1});
  RunPass();
  Submit(1, 1);
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(StatusOf(1), IsOk());
}

class FewBlocksAheadTest : public AheadTest {
 protected:
  FewBlocksAheadTest()
      : AheadTest({.prefill_chunk = 32,
                   .max_hold = 0,
                   .sessions = {.num_blocks = 8}}) {}
};

// Its round goes on without drafts.
TEST_F(FewBlocksAheadTest, AnOpeningWaitsForBranchesForATenthOfASecond) {
  OpenAll({1});
  SubmitAhead(1, 20, {.num_more = 9, .num_branches = 3});
  RunPass();
  Submit(2, 50);  // four blocks; those that branches have would do
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(StatusOf(2), StatusIs(absl::StatusCode::kUnknown)) << i;
    RunPass(milliseconds(40));
  }
  EXPECT_EQ(scheduler_.sessions().Find(Id(1))->branches.size(), 3u);
  RunPass();
  EXPECT_TRUE(IsRefusal(StatusOf(2)));
}

TEST_F(FewBlocksAheadTest, NobodyIsPreemptedForIt) {
  OpenAll({1});
  Submit(2, 96);  // six blocks; one is free
  while (!RunPass().empty()) {
  }
  SubmitAhead(1, 20 + kKvBlockLength);
  EXPECT_TRUE(IsRefusal(StatusOf(1)));
  EXPECT_EQ(scheduler_.sessions().Find(Id(2))->blocks.size(), 6u);
  SubmitAhead(1, 20);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 20)));
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 0);
}

TEST_F(FewBlocksAheadTest, ItWaitsForNoRoom) {
  OpenAll({1, 2, 3});
  Submit(2, 1, {.num_more = 9});
  BeginPass();
  Submit(1, 127);  // all blocks: it waits for the second one's round
  SubmitAhead(3, 1);
  EXPECT_TRUE(IsRefusal(StatusOf(3)));
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 0);
  EndPass();
}

class AheadHoldTest : public AheadTest {
 protected:
  AheadHoldTest() : AheadTest({.sessions = {.num_blocks = 200}}) {}
};

TEST_F(AheadHoldTest, NobodyIsHeldForItsRowsButWorkLikeIt) {
  OpenAll({1, 2, 3});
  now_ += milliseconds(2000);
  LearnPassTime();
  now_ += milliseconds(2000);
  SubmitAhead(1, 1, {.num_more = 2});
  const Pass* const pass = NextPass();
  ASSERT_NE(pass, nullptr);
  SubmitAhead(2, 1);
  scheduler_.EndPass(PassResults(1, LogitRows()), now_);
  EXPECT_EQ(NextPass(), nullptr);
  EXPECT_TRUE(scheduler_.IsHeld(now_));
  Submit(3, 1);
  EXPECT_FALSE(scheduler_.IsHeld(now_));
  EXPECT_NE(NextPass(), nullptr);
}

}  // namespace
}  // namespace outrider
