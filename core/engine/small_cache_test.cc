// SPDX-License-Identifier: Apache-2.0
// The scheduler where blocks run out.
#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>

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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class SmallCacheTest : public SchedulerTest {
 protected:
  explicit SmallCacheTest(int num_in_flight = 1)
      : SchedulerTest({.prefill_chunk = 32,
                       .max_hold = 0,
                       .num_in_flight = num_in_flight,
                       .sessions = {.num_blocks = 8}}) {}

  void Open(int name, int num_tokens) {
    Submit(name, num_tokens);
    while (!RunPass().empty()) {
    }
    endings_.clear();
  }
  // Whoever is refused, misses or is preempted comes back as a coordinator
  // would: until all streams have got to their end.
  void RunAllUnderARandomSchedule(unsigned seed = 3);
};

TEST_F(SmallCacheTest, ARoundThatNeedsBlocksOfOneAtWorkWaitsForIt) {
  OpenAll({1, 2});
  Submit(2, 70);                             // five blocks
  Submit(1, 60, {.holds_up_stream = true});  // four
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 32)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 32)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 6)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 1);
  EXPECT_TRUE(scheduler_.sessions().Find(Id(2))->blocks.empty());
}

// Two younger sessions, never both at rest: what either gives back would go to
// the other one, or to a newcomer, for as long as they go on.
TEST_F(SmallCacheTest, WhoWaitsForRoomGetsItBeforeThoseWhoAreYounger) {
  for (const int name : {1, 2, 3}) Open(name, 30);
  Submit(2, 1, {.num_more = 1});
  BeginPass();
  Submit(1, 70);  // five blocks; two are free, and two with each of the others
  EndPass();
  BeginPass();
  Submit(3);
  Submit(4);
  EXPECT_THAT(StatusOf(4), StatusIs(absl::StatusCode::kResourceExhausted,
                                    HasSubstr("streams that have begun")));
  EndPass();
  EXPECT_THAT(StatusOf(2), IsOk());
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 2);
}

TEST_F(SmallCacheTest, TheOldestGetsItsRoomHoweverLongThePassTook) {
  Open(1, 30);
  Open(2, 30);
  Submit(2);
  BeginPass();
  Submit(1, 70);
  EndPass(milliseconds(1100));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
}

// What runs out, and by then is opened anew, is younger than all others.
TEST_F(SmallCacheTest, NoLeaseRunsOutWhileACallWaitsForRoomOrIsHeldBack) {
  for (const int name : {1, 2, 3}) Open(name, 30);
  Submit(2, 1, {.num_more = 1});
  BeginPass();
  Submit(1, 70, {.holds_up_stream = true});
  Submit(3, 1, {.holds_up_stream = true});  // is held back
  now_ += seconds(31);
  scheduler_.Expire(now_);
  EndPass(seconds(31));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 1)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_NE(scheduler_.sessions().Find(Id(3)), nullptr);
}

// A text that is computed from its beginning takes its time.
TEST_F(SmallCacheTest, ADraftThatWaitsForALongTextHoldsNobodyBack) {
  Open(1, 14);
  Open(2, 1);
  Submit(3, 40);  // an opening
  BeginPass();
  Submit(1, 80);
  Submit(2);
  EndPass();
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 1), Pair(3, 8)));
}

TEST_F(SmallCacheTest, AStreamThatHasBegunWaitsForNoTextOfANewOne) {
  Open(1, 14);
  salt_ = "s";
  Submit(3, 80);  // five blocks; two are left
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(3, 32)));
  Submit(1, 40, {.holds_up_stream = true});  // three more
  EndPass();
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_TRUE(IsRefusal(StatusOf(3)));
  EXPECT_EQ(scheduler_.sessions().Find(Id(3)), nullptr);
  RunPass();
  EXPECT_THAT(StatusOf(1), IsOk());
  // When it comes again, it goes on where it was ended.
  scheduler_.Release(Header(1, 0));
  Submit(3, 80);
  EXPECT_EQ(scheduler_.metrics().num_reused_tokens, 32);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  RunPass();
  EXPECT_THAT(StatusOf(3), IsOk());
}

TEST_F(SmallCacheTest, ANewTextGivesWayBeforeAStreamIsPreempted) {
  for (const int name : {1, 2}) Open(name, 14);
  Submit(3, 40);  // three blocks; three are left
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  Submit(1, 60, {.holds_up_stream = true});  // four
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_TRUE(IsRefusal(StatusOf(3)));
  EXPECT_EQ(scheduler_.sessions().Find(Id(2))->blocks.size(), 1);
}

TEST_F(SmallCacheTest, ANewTextGivesWayBesideAStreamThatIsPreempted) {
  for (const int name : {1, 2}) Open(name, 14);
  Submit(3, 40);                              // three blocks; three are left
  Submit(1, 100, {.holds_up_stream = true});  // seven
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_TRUE(IsRefusal(StatusOf(3)));
  EXPECT_TRUE(scheduler_.sessions().Find(Id(2))->blocks.empty());
}

TEST_F(SmallCacheTest, OfNewTextsTheYoungestGivesWayAndNoneInVain) {
  for (const int name : {1, 2}) Open(name, 14);
  Submit(3, 10);
  Submit(4, 17);                              // two blocks; three are left
  Submit(2, 100, {.holds_up_stream = true});  // seven more
  EXPECT_FALSE(scheduler_.sessions().Find(Id(4))->gives_way_to.has_value());
  Submit(1, 80, {.holds_up_stream = true});  // five
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  EXPECT_TRUE(IsRefusal(StatusOf(4)));
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 1);
  EXPECT_EQ(StatusOf(3).code(), absl::StatusCode::kUnknown);
}

TEST_F(SmallCacheTest, ATextThatWasToGiveWayAndIsDoneBeforeIsNotPreempted) {
  Submit(1, 30);
  BeginPass();
  Submit(2, 100, {.holds_up_stream = true});  // seven blocks; six are free
  EXPECT_TRUE(scheduler_.sessions().Find(Id(1))->gives_way_to.has_value());
  EndPass();
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 0);
}

TEST_F(SmallCacheTest, ATextThatWasToGiveWayAndFailsIsNotPreempted) {
  Submit(1, 30);
  results_[1] = absl::ResourceExhaustedError("no memory for the pass");
  BeginPass();
  Submit(2, 100, {.holds_up_stream = true});
  EndPass();
  EXPECT_TRUE(IsRefusal(StatusOf(1)));
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 0);
}

TEST_F(SmallCacheTest, NoNewStreamTakesTheRoomOfOneWhosePassHadNoMemory) {
  Open(1, 10);
  Submit(1, 1, {.holds_up_stream = true});
  results_[1] = absl::ResourceExhaustedError("no memory for the pass");
  RunPass();
  EXPECT_TRUE(IsRefusal(StatusOf(1)));
  Submit(2, 10);
  EXPECT_TRUE(IsRefusal(StatusOf(2)));
  results_.clear();
  Submit(1, 1, {.holds_up_stream = true});  // what it had is still there
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(StatusOf(1), IsOk());
  Submit(2, 10);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 10)));
}

// Where it has nothing it can go elsewhere.
TEST_F(SmallCacheTest, AStreamWhosePassesHaveNoMemoryKeepsNothingForLong) {
  Open(1, 10);
  results_[1] = absl::ResourceExhaustedError("no memory for the pass");
  for (const bool is_there : {true, false}) {
    Submit(1, 1, {.holds_up_stream = true});
    RunPass();
    EXPECT_TRUE(IsRefusal(StatusOf(1)));
    EXPECT_EQ(scheduler_.sessions().Find(Id(1)) != nullptr, is_there);
  }
}

TEST_F(SmallCacheTest, AnOpeningWhosePassHadNoMemoryLeavesNothing) {
  Submit(1, 10);
  results_[1] = absl::ResourceExhaustedError("no memory for the pass");
  RunPass();
  EXPECT_TRUE(IsRefusal(StatusOf(1)));
  EXPECT_EQ(scheduler_.sessions().num_sessions(), 0);
  results_.clear();
  Submit(1, 10);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 10)));
}

// It comes from a node that is gone: the texts may take a minute, and then hold
// their blocks for as long as their streams run.
TEST_F(SmallCacheTest, TheTextOfANewStreamGivesWayToOneThatMovesHere) {
  Submit(1, 50);
  Submit(2, 30);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
  Submit(3, 40, {.holds_up_stream = true});  // three blocks; two are free
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  EXPECT_TRUE(IsRefusal(StatusOf(2)));  // the younger one of both
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 8), Pair(1, 18)));
  EXPECT_THAT(StatusOf(3), IsOk());
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 1);
}

TEST_F(SmallCacheTest, NoNewStreamTakesWhatGivesWayToOneThatMovesHere) {
  Submit(1, 50);
  Submit(2, 30);
  BeginPass();
  Submit(3, 40, {.holds_up_stream = true});  // three blocks; two are free
  Submit(4, 10);
  EXPECT_TRUE(IsRefusal(StatusOf(4)));
  EndPass(milliseconds(10));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
}

// Small prompts would take each block that comes free for a moved stream.
TEST_F(SmallCacheTest, NoNewStreamOutrunsOneThatHasBegunAndWasRefused) {
  Open(1, 50);
  Open(2, 10);
  Submit(3, 60, {.holds_up_stream = true});  // four blocks; three are free
  EXPECT_TRUE(IsRefusal(StatusOf(3)));
  Submit(4, 10);
  EXPECT_THAT(StatusOf(4), StatusIs(absl::StatusCode::kResourceExhausted,
                                    HasSubstr("streams that have begun")));
  scheduler_.Release(Header(2, 0));
  Submit(3, 60, {.holds_up_stream = true});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  scheduler_.Release(Header(1, 0));
  Submit(4, 10);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 28)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(4, 10)));
}

TEST_F(SmallCacheTest, ARefusedStreamThatStaysAwayKeepsNoNewOneOutForLong) {
  Open(1, 50);
  Open(2, 10);
  Submit(3, 60, {.holds_up_stream = true});
  now_ += seconds(1);
  Submit(4, 10);
  EXPECT_TRUE(IsRefusal(StatusOf(4)));
  now_ += seconds(1);
  Submit(4, 10);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(4, 10)));
}

TEST_F(SmallCacheTest, ARefusedStreamThatIsReleasedKeepsNobodyOut) {
  Open(1, 50);
  Open(2, 10);
  Submit(3, 60, {.holds_up_stream = true});
  scheduler_.Release(Header(3, 0));
  Submit(4, 10);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(4, 10)));
}

TEST_F(SmallCacheTest, ADraftIsRefusedAfterATenthOfASecond) {
  Open(1, 30);
  Submit(3, 40, {.num_more = 9});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  Submit(1, 90);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
    RunPass(milliseconds(40));
  }
  RunPass();
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(RetryDelayOf(StatusOf(1)).has_value());
}

// Nor is the text of a stream ended that has begun as well.
TEST_F(SmallCacheTest, WhatHoldsUpAStreamKeepsItsPlace) {
  Open(1, 30);
  Submit(3, 40, {.num_more = 9, .holds_up_stream = true});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  Submit(1, 90, {.holds_up_stream = true});
  while (!endings_.contains(3)) RunPass(milliseconds(400));
  EXPECT_THAT(StatusOf(3), IsOk());
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 32)));
}

TEST_F(SmallCacheTest, ADraftThatIsHeldBackIsRefusedAsSoon) {
  for (const int name : {1, 2, 3}) Open(name, 14);
  Submit(3, 1, {.num_more = 40});  // four blocks; two are free
  const auto start = now_;
  BeginPass();
  Submit(2, 80);
  EndPass(milliseconds(30));
  while (StatusOf(2).code() == absl::StatusCode::kUnknown) {
    ASSERT_LT(now_ - start, milliseconds(200));
    BeginPass();
    if (now_ - start == milliseconds(90)) Submit(1, 95);  // six; is older
    EndPass(milliseconds(30));
  }
  EXPECT_THAT(StatusOf(2), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_LE(now_ - start, milliseconds(150));
}

// So it is held for as long as it is, and not for as long as it waited.
TEST_F(SmallCacheTest, WhatAWaitForRoomTakesIsNoWayRound) {
  OpenAll({1, 2});
  const auto usual_return = [this] {
    return scheduler_.sessions().Find(Id(1))->usual_return;
  };
  const auto come_back = [this] {
    now_ += milliseconds(20);
    Submit(1, 1, {.holds_up_stream = true});
  };
  for (int i = 0; i < 20; ++i) {
    come_back();
    RunPass();
  }
  EXPECT_NEAR(usual_return().count(), 20e6, 1e4);
  Submit(2, 70);  // five blocks; six are free
  now_ += milliseconds(20);
  Submit(1, 50, {.holds_up_stream = true});  // four
  for (int i = 0; i < 4; ++i) RunPass();
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_NEAR(usual_return().count(), 20e6, 1e4);
}

TEST_F(SmallCacheTest, WhoWasRefusedCameBackWhenItCameFirst) {
  Open(1, 14);
  for (int i = 0; i < 10; ++i) {
    now_ += milliseconds(20);
    Submit(1);
    RunPass();
  }
  Submit(3, 40, {.num_more = 9});
  now_ += milliseconds(20);
  Submit(1, 90);
  for (int i = 0; i < 5; ++i) RunPass(milliseconds(40));
  EXPECT_TRUE(IsRefusal(StatusOf(1)));
  scheduler_.Release(Header(3, 0));
  now_ += milliseconds(700);
  Submit(1);
  RunPass();
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_NEAR(scheduler_.sessions().Find(Id(1))->usual_return.count(), 20e6,
              1e5);
}

TEST_F(SmallCacheTest, ATextThatWasToGiveWayToACallThatHasGoneGoesOn) {
  Open(1, 14);
  Submit(3, 80);  // five blocks; two are left
  BeginPass();
  Submit(1, 40, {.holds_up_stream = true});  // three more
  EXPECT_TRUE(scheduler_.sessions().Find(Id(3))->gives_way_to.has_value());
  cancelled_ = {1};
  EndPass();
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 16)));
  EXPECT_THAT(StatusOf(3), IsOk());
}

class FewSessionsTest : public SchedulerTest {
 protected:
  FewSessionsTest()
      : SchedulerTest({.prefill_chunk = 32,
                       .max_hold = 0,
                       .sessions = {.num_blocks = 200, .max_sessions = 2}}) {}
};

// There are blocks for many more.
TEST_F(FewSessionsTest, TheTextOfANewStreamGivesItsPlaceToOneThatHasBegun) {
  Submit(1, 100);
  Submit(2, 100);
  RunPass();
  Submit(3, 40, {.holds_up_stream = true});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(3, 32)));
  EXPECT_TRUE(IsRefusal(StatusOf(2)));  // the younger one of both, alone
  EXPECT_THAT(StatusOf(2).message(), HasSubstr("needs room at this node"));
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 1);
}

void SmallCacheTest::RunAllUnderARandomSchedule(unsigned seed) {
  std::mt19937 random(seed);
  constexpr int kNumSessions = 6;
  constexpr int kPrompt = 20;
  constexpr int kLength = 90;  // each alone may fill six of the eight blocks
  std::map<int, int> committed;
  std::set<int> calling;
  int num_done = 0;
  for (int name = 1; name <= kNumSessions; ++name) committed[name] = kPrompt;
  int step = 0;
  while (num_done < kNumSessions) {
    ASSERT_LT(++step, 100'000);
    now_ += milliseconds(random() % 20);
    const int name = 1 + static_cast<int>(random() % kNumSessions);
    if (committed[name] < kLength && !calling.contains(name)) {
      RequestHeader header = Header(name, 1);
      CacheDelta& delta = header.delta;
      delta.keep_length = std::min(delta.keep_length, committed[name] - 1);
      delta.append_tokens = TokenSeq(committed[name] - delta.keep_length, 1);
      endings_.erase(name);
      calling.insert(name);
      Submit(header, {.num_more = static_cast<int>(random() % 4),
                      .holds_up_stream = committed[name] > kPrompt});
    }
    if (random() % 2 == 0) BeginPass();
    if (random() % 2 == 0 && !begun_.empty()) {
      EndPass(milliseconds(random() % 50));
    }
    for (auto it = calling.begin(); it != calling.end();) {
      const int caller = *it;
      if (!endings_.contains(caller)) {
        ++it;
        continue;
      }
      const Ending& ending = endings_[caller];
      if (ending.status.ok() && !ending.miss.has_value()) {
        committed[caller] += 1 + static_cast<int>(random() % 3);
        if (committed[caller] >= kLength) {
          ++num_done;
          scheduler_.Release(Header(caller, 0));
        }
      } else if (!ending.status.ok()) {
        ASSERT_THAT(ending.status,
                    StatusIs(absl::StatusCode::kResourceExhausted));
        ASSERT_TRUE(RetryDelayOf(ending.status).has_value());
      }
      it = calling.erase(it);
    }
  }
  EXPECT_EQ(scheduler_.sessions().blocks().num_free(), 8);
}

// The blocks add up after every step, with passes and rows in any order.
TEST_F(SmallCacheTest, EveryStreamEndsUnderARandomSchedule) {
  RunAllUnderARandomSchedule();
  EXPECT_GT(scheduler_.sessions().num_preempted(), 0);
}

TEST_F(SmallCacheTest, EveryStreamEndsWhereAllShareWhatTheyBeginWith) {
  salt_ = "s";
  RunAllUnderARandomSchedule();
  EXPECT_GT(scheduler_.metrics().num_reused_tokens, 0);
}

class SmallCacheInFlightTest : public SmallCacheTest {
 protected:
  SmallCacheInFlightTest() : SmallCacheTest(/*num_in_flight=*/2) {}
};

TEST_F(SmallCacheInFlightTest, EveryStreamEndsUnderARandomSchedule) {
  for (const unsigned seed : {3, 4, 5}) RunAllUnderARandomSchedule(seed);
  EXPECT_GT(scheduler_.sessions().num_preempted(), 0);
  EXPECT_GT(scheduler_.metrics().num_launched_early, 0);
}

TEST_F(SmallCacheInFlightTest, EveryStreamEndsWhereAllShareWhatTheyBeginWith) {
  salt_ = "s";
  RunAllUnderARandomSchedule();
  EXPECT_GT(scheduler_.metrics().num_reused_tokens, 0);
  EXPECT_GT(scheduler_.metrics().num_launched_early, 0);
}

}  // namespace
}  // namespace outrider
