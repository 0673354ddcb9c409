// SPDX-License-Identifier: Apache-2.0
// The scheduler's rules one by one, under virtual time.
#include "core/engine/batch_scheduler.h"

#include <chrono>
#include <map>
#include <stdexcept>
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
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class BatchSchedulerTest : public SchedulerTest {};

TEST_F(BatchSchedulerTest, WhatIsReadyTogetherIsRunTogether) {
  for (const int name : {1, 2, 3}) Submit(name, 2);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 2), Pair(2, 2), Pair(3, 2)));
  for (const int name : {1, 2, 3}) EXPECT_THAT(StatusOf(name), IsOk());
  EXPECT_THAT(RunPass(), IsEmpty());
  EXPECT_EQ(scheduler_.num_jobs(), 0);
}

TEST_F(BatchSchedulerTest, SessionsJoinAndLeaveBetweenTheExtensionsOfOthers) {
  Submit(1, 1, {.num_more = 3});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  Submit(2, 1, {.num_more = 1});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1), Pair(2, 1)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1), Pair(2, 1)));
  EXPECT_THAT(StatusOf(2), IsOk());
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(scheduler_.sessions().Find(Id(1))->log.length(), 4);
}

TEST_F(BatchSchedulerTest, OfAPassEachHasItsRowsShareForItsOwn) {
  Submit(1, 8);
  Submit(2, 24);
  EXPECT_THAT(RunPass(milliseconds(100)), ElementsAre(Pair(1, 8), Pair(2, 24)));
  const auto of_others = [this](int name) {
    return endings_[name].compute_seconds - endings_[name].own_seconds;
  };
  EXPECT_NEAR(of_others(1), 0.075, 1e-9);
  EXPECT_NEAR(of_others(2), 0.025, 1e-9);
  // So it is in later rounds, in each of their passes.
  Submit(1, 1, {.num_more = 1});
  Submit(2, 3, {.num_more = 1});
  RunPass(milliseconds(100));
  RunPass(milliseconds(100));
  EXPECT_NEAR(of_others(1), 0.075 + 0.05, 1e-9);
  EXPECT_NEAR(of_others(2), 0.025 + 0.05, 1e-9);
}

TEST_F(BatchSchedulerTest, OfWhatAPromptTakesRoundsHaveTheirShare) {
  OpenAll({1, 2});
  Submit(1, 1);
  Submit(2, 4);
  Submit(3, 20);
  EXPECT_THAT(RunPass(milliseconds(100)),
              ElementsAre(Pair(1, 1), Pair(2, 4), Pair(3, 20)));
  EXPECT_NEAR(endings_[1].own_seconds, 0.02, 1e-3);
  EXPECT_NEAR(endings_[2].own_seconds, 0.08, 1e-3);
  EXPECT_NEAR(endings_[3].own_seconds, 0.08, 1e-3);
}

TEST_F(BatchSchedulerTest, TheQueueIsThePassesThatACallWasNotIn) {
  Submit(1, 8);
  BeginPass();
  Submit(2, 8);
  EndPass(milliseconds(100));
  RunPass(milliseconds(30));
  EXPECT_NEAR(endings_[1].queue_seconds, 0, 1e-9);
  EXPECT_NEAR(endings_[2].queue_seconds, 0.1, 1e-3);
  EXPECT_NEAR(endings_[2].compute_seconds, 0.03, 1e-3);
}

TEST_F(BatchSchedulerTest, OfWhatTheModelDrewIsCachedWhatTheWorkKeeps) {
  drawn_ = {7, 8, 9};
  Submit(1, 2, {.num_more = 4, .max_drawn = 4, .num_kept = 1});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 2)));
  const TokenLog& log = scheduler_.sessions().Find(Id(1))->log;
  EXPECT_THAT(log.tokens(), ElementsAre(1, 1, 7));
  EXPECT_EQ(scheduler_.metrics().num_refused_tokens, 2);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(log.tokens(), ElementsAre(1, 1, 7, 1));
}

// A prompt goes on after its last chunk alone.
TEST_F(BatchSchedulerTest, NothingIsDrawnBeforeThePromptIsRun) {
  drawn_ = {7};
  Submit(1, 40, {.num_more = 1, .max_drawn = 1, .num_kept = 1});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_EQ(scheduler_.sessions().Find(Id(1))->log.length(), 32);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 8)));
  EXPECT_EQ(scheduler_.sessions().Find(Id(1))->log.length(), 41);
}

TEST_F(BatchSchedulerTest, WhatIsCachedAlreadyIsNotRunAgain) {
  salt_ = "s";
  Submit(1, 20);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 20)));
  Submit(2, 60);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 32)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 12)));
  EXPECT_EQ(num_rows_[2], 1);
  EXPECT_EQ(scheduler_.sessions().Find(Id(2))->log.length(), 60);
  EXPECT_EQ(scheduler_.metrics().num_sharable_tokens, 80);
  EXPECT_EQ(scheduler_.metrics().num_reused_tokens, 16);
  EXPECT_EQ(scheduler_.metrics().num_blocks_shared, 1);
  EXPECT_EQ(scheduler_.metrics().num_blocks_kept, 0);
  scheduler_.Release(Header(2, 0));
  EXPECT_EQ(scheduler_.metrics().num_blocks_kept, 2);
}

// What else failed with it may be as wrong.
TEST_F(BatchSchedulerTest, WhatAFailedSessionCachedIsNotReused) {
  salt_ = "s";
  Submit(1, 20);
  RunPass();
  results_[2] = absl::InternalError("not a number");
  Submit(2, 20);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 4)));
  EXPECT_THAT(StatusOf(2), StatusIs(absl::StatusCode::kInternal));
  Submit(3, 20);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 20)));
}

TEST_F(BatchSchedulerTest, WhatMayBeWrongIsNotReusedAndTheSessionGoesOn) {
  salt_ = "s";
  Submit(1, 20, {.is_doubtful = true});
  RunPass();
  EXPECT_THAT(StatusOf(1), IsOk());
  Submit(1, 20);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 20)));
  scheduler_.Release(Header(1, 0));
  Submit(2, 50);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 32)));
}

TEST_F(BatchSchedulerTest, EachWorkGetsItsOwnRows) {
  std::map<int, float> seen;
  for (const int name : {1, 2, 3}) {
    Submit(name, 1, {.on_take = [&seen, name](const LogitRows& rows) {
             seen[name] = rows.Row(0)[0];
           }});
  }
  RunPass();
  EXPECT_THAT(seen, ElementsAre(Pair(1, 1.0f), Pair(2, 2.0f), Pair(3, 3.0f)));
}

TEST_F(BatchSchedulerTest, APromptIsRunInChunksAndItsRowsComeWithTheLast) {
  Submit(1, 75, {.num_rows = 3});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_EQ(num_rows_[1], 0);
  EXPECT_EQ(scheduler_.sessions().Find(Id(1))->log.length(), 32);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 11)));
  EXPECT_EQ(num_rows_[1], 3);
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(scheduler_.sessions().Find(Id(1))->log.length(), 75);
  EXPECT_EQ(scheduler_.metrics().num_chunks, 2);
}

TEST_F(BatchSchedulerTest, AChunkIsWhatTheRunningSessionsLeaveOfTheBudget) {
  OpenAll({1, 2});
  Submit(9, 200);
  for (const int name : {1, 2}) Submit(name, 5, {.num_rows = 5});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 5), Pair(2, 5), Pair(9, 22)));
}

TEST_F(BatchSchedulerTest, AFullHouseLetsAChunkIntoEverySecondPass) {
  OpenAll({1, 2, 3, 4, 5, 6});
  Submit(9, 100);
  std::vector<int> chunks;
  for (int round = 0; round < 4; ++round) {
    for (int name = 1; name <= 6; ++name) Submit(name, 5, {.num_rows = 5});
    int chunk = 0;
    int num_running = 0;
    for (const auto& [name, num_tokens] : RunPass()) {
      if (name == 9) chunk = num_tokens;
      if (name != 9) ++num_running;
    }
    EXPECT_EQ(num_running, 6);
    chunks.push_back(chunk);
  }
  EXPECT_THAT(chunks, ElementsAre(0, 32, 0, 32));
}

TEST_F(BatchSchedulerTest, InAVeryFullHousePromptsHaveAQuarterOfTheRows) {
  for (int name = 1; name <= 12; ++name) OpenAll({name});
  Submit(99, 100);
  std::vector<int> chunks;
  for (int round = 0; round < 4; ++round) {
    for (int name = 1; name <= 12; ++name) Submit(name, 5, {.num_rows = 5});
    int chunk = 0;
    for (const auto& [name, num_tokens] : RunPass()) {
      if (name == 99) chunk = num_tokens;
    }
    chunks.push_back(chunk);
  }
  EXPECT_THAT(chunks, ElementsAre(0, 40, 0, 40));
}

TEST_F(BatchSchedulerTest, AStreamThatHasBegunElsewhereIsInEveryPass) {
  OpenAll({1, 2, 3, 4, 5, 6});
  Submit(9, 100, {.holds_up_stream = true});
  for (const int chunk : {32, 32, 32, 4}) {
    for (int name = 1; name <= 6; ++name) Submit(name, 5, {.num_rows = 5});
    EXPECT_THAT(RunPass(), Contains(Pair(9, chunk)));
  }
}

TEST_F(BatchSchedulerTest, AShortPromptDoesNotWaitForTheWholeOfALongOne) {
  Submit(1, 1000);
  Submit(2, 40);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 32)));
  // What is left of it is no more than a round's tokens.
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 8), Pair(1, 24)));
  EXPECT_THAT(StatusOf(2), IsOk());
}

TEST_F(BatchSchedulerTest, AStreamThatHasBegunElsewhereComesBeforeOpenings) {
  Submit(1, 100);
  Submit(2, 40);
  Submit(3, 40, {.holds_up_stream = true});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 8), Pair(1, 24)));
  EXPECT_THAT(StatusOf(3), IsOk());
}

// Many short prompts at once cost the others no more than a long one does.
TEST_F(BatchSchedulerTest, ShortPromptsShareTheBudgetToo) {
  OpenAll({1, 2});
  for (const int name : {11, 12, 13}) Submit(name, 14);
  for (const int name : {1, 2}) Submit(name, 2);
  EXPECT_THAT(RunPass(),
              ElementsAre(Pair(1, 2), Pair(2, 2), Pair(11, 14), Pair(12, 14)));
  for (const int name : {1, 2}) Submit(name, 2);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 2), Pair(2, 2), Pair(13, 14)));
}

// Rows that are wanted stay together, though they are more than a chunk.
TEST_F(BatchSchedulerTest, AnOpeningOfMoreRowsThanTheBudgetRunsWhole) {
  OpenAll({1});
  Submit(9, 40, {.num_rows = 40});
  Submit(1);
  // The pass before had a chunk.
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  Submit(1);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1), Pair(9, 40)));
}

TEST_F(BatchSchedulerTest, ItDoesNotWaitForAPassThatNobodyElseIsIn) {
  Submit(9, 32);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(9, 32)));
  Submit(8, 40, {.num_rows = 40});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(8, 40)));
}

class FewRowsTest : public SchedulerTest {
 protected:
  FewRowsTest()
      : SchedulerTest({.prefill_chunk = 32,
                       .max_rows = 12,
                       .max_hold = 0,
                       .sessions = {.num_blocks = 200}}) {}
};

TEST_F(FewRowsTest, NoRunningSessionIsPassedOverTwice) {
  OpenAll({1, 2, 3, 4});
  for (const int name : {1, 2, 3, 4}) Submit(name, 5);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 5), Pair(2, 5)));
  for (const int name : {1, 2}) Submit(name, 5);  // back at once
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 5), Pair(4, 5)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 5), Pair(2, 5)));
}

TEST_F(FewRowsTest, NobodyRunsTwiceBeforeAllWhoWaitedHaveRun) {
  OpenAll({1, 2, 3, 4, 5, 6});
  for (const int name : {1, 2, 3, 4, 5, 6}) Submit(name, 5);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 5), Pair(2, 5)));
  for (const int name : {1, 2}) Submit(name, 5);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 5), Pair(4, 5)));
  for (const int name : {3, 4}) Submit(name, 5);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(5, 5), Pair(6, 5)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 5), Pair(2, 5)));
}

TEST_F(BatchSchedulerTest, ACallerThatHasGoneLeavesBetweenPasses) {
  OpenAll({2});
  Submit(1, 100);
  Submit(2, 1, {.num_more = 5});
  RunPass();
  cancelled_ = {1, 2};
  EXPECT_THAT(RunPass(), IsEmpty());
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(StatusOf(2), StatusIs(absl::StatusCode::kCancelled));
  // The opening's session has no name that anybody knows; the other one keeps
  // what was run.
  EXPECT_EQ(scheduler_.sessions().Find(Id(1)), nullptr);
  EXPECT_EQ(scheduler_.sessions().Find(Id(2))->log.length(), 2);
}

TEST_F(BatchSchedulerTest, AReleaseEndsTheWorkOfItsSession) {
  Submit(1, 100);
  RunPass();
  RequestHeader header = Header(1, 0);
  EXPECT_TRUE(scheduler_.Release(header));
  EXPECT_THAT(RunPass(), IsEmpty());
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(scheduler_.sessions().num_sessions(), 0);
}

TEST_F(BatchSchedulerTest, CallsOfOneSessionAreServedOneAfterAnother) {
  OpenAll({1});
  const RequestHeader header = Header(1, 2);
  Submit(header, {.num_more = 1});
  Submit(header, {.num_more = 1});  // the same bytes once more
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 2)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 2)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_EQ(scheduler_.sessions().Find(Id(1))->log.length(), 4);
}

TEST_F(BatchSchedulerTest, AMissIsAnsweredWithoutAPass) {
  RequestHeader header = Header(1, 1);
  header.incarnation = Id(7);
  Submit(header);
  ASSERT_THAT(StatusOf(1), IsOk());
  ASSERT_TRUE(endings_[1].miss.has_value());
  EXPECT_EQ(endings_[1].miss->reason, MissReason::kUnknownIncarnation);
}

TEST_F(BatchSchedulerTest, AnExceptionWhileTakingRowsFailsThatSessionOnly) {
  Submit(1, 1, {.on_take = [](const LogitRows&) {
           throw std::runtime_error("out of luck");
         }});
  Submit(2);
  RunPass();
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(StatusOf(2), IsOk());
  EXPECT_EQ(scheduler_.sessions().Find(Id(1)), nullptr);
  EXPECT_EQ(scheduler_.num_jobs(), 0);
  Submit(1);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
}

TEST_F(BatchSchedulerTest, AnExceptionWhileBeginningFailsThatSessionOnly) {
  Submit(1, 1, {.on_begin = [] { throw std::runtime_error("out of luck"); }});
  Submit(2);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 1)));
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(scheduler_.sessions().Find(Id(1)), nullptr);
  EXPECT_EQ(scheduler_.num_jobs(), 0);
}

TEST_F(BatchSchedulerTest, AnExtensionThatFailsForgetsItsSessionOnly) {
  OpenAll({1, 2});
  Submit(1);
  Submit(2);
  results_[1] = absl::InternalError("a row that is none");
  RunPass();
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(StatusOf(2), IsOk());
  EXPECT_EQ(scheduler_.sessions().Find(Id(1)), nullptr);
}

TEST_F(BatchSchedulerTest, OneThatHadNoMemoryIsRefusedAndForgetsNothing) {
  OpenAll({1});
  Submit(1);
  results_[1] = absl::ResourceExhaustedError("no memory for the pass");
  RunPass();
  EXPECT_TRUE(IsRefusal(StatusOf(1))) << "is not for good";
  results_.clear();
  Submit(1);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(StatusOf(1), IsOk());
}

TEST_F(BatchSchedulerTest, ALostDeviceEndsAllWorkAndWelcomesNoMore) {
  Submit(1);
  Submit(2, 100);
  results_[1] = absl::UnavailableError("the device fell off the bus");
  RunPass();
  EXPECT_TRUE(scheduler_.is_lost());
  EXPECT_THAT(RunPass(), IsEmpty());
  Submit(3);
  for (const int name : {1, 2, 3}) {
    EXPECT_THAT(StatusOf(name), StatusIs(absl::StatusCode::kUnavailable));
  }
}

// A pass of 72 s under a lease of 30 threw away its own cache: the second token
// paid another prefill.
TEST_F(BatchSchedulerTest, APassLongerThanTheLeaseKeepsItsSession) {
  Submit(1, 8);
  EXPECT_THAT(RunPass(seconds(72)), ElementsAre(Pair(1, 8)));
  scheduler_.Expire(now_);
  now_ += seconds(1);
  Submit(1);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_FALSE(endings_[1].miss.has_value());
}

class ShortQueueTest : public SchedulerTest {
 protected:
  ShortQueueTest()
      : SchedulerTest({.max_queue_length = 3,
                       .max_hold = 0,
                       .sessions = {.num_blocks = 200}}) {}
};

TEST_F(ShortQueueTest, AFullQueueRefusesOpeningsAndNoLiveSession) {
  OpenAll({1, 2});
  OpenAll({3, 4});
  for (const int name : {1, 2, 3, 4}) Submit(name);
  Submit(5);
  ASSERT_THAT(StatusOf(5), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(RetryDelayOf(StatusOf(5)).has_value());
  EXPECT_THAT(RunPass(),
              ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(4, 1)));
}

}  // namespace
}  // namespace outrider
