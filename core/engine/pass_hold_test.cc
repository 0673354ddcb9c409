// SPDX-License-Identifier: Apache-2.0
// Passes that are held for sessions that were just answered, under virtual
// time.
#include "core/engine/pass_hold.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "core/engine/batch_scheduler.h"
#include "core/testing/named_session.h"
#include "core/testing/scheduler_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Id;
using ::outrider::testing::SchedulerTest;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// So many times a pass of 100 ms with all sessions, each back after `gap`. A
// first pass of its rows alone has shown that a row takes 10 ms.
class HoldTest : public SchedulerTest {
 protected:
  HoldTest() : SchedulerTest({.sessions = {.num_blocks = 200}}) {}

  double HoldMs() const {
    EXPECT_TRUE(scheduler_.ask_again_at().has_value());
    return std::chrono::duration<double, std::milli>(
               scheduler_.ask_again_at().value_or(now_) - now_)
        .count();
  }
  void RunRounds(int count, milliseconds gap) {
    Submit(9, 10);
    RunPass(milliseconds(170));
    scheduler_.Release(Header(9, 0));
    for (int round = 0; round < count; ++round) {
      now_ += gap;
      for (const int name : {1, 2, 3}) Submit(name);
      RunPass();
    }
  }
  // A pass, where a node would look for one.
  const Pass* Look() { return scheduler_.IsHeld(now_) ? nullptr : NextPass(); }
  // Two sessions go on after a pass in which a third one was answered. The pass
  // that a node begins once their rows are taken, or nullptr: it is held.
  const Pass* GoOnBesideOneThatWasAnswered(milliseconds gap, bool stays) {
    RunRounds(10, gap);
    now_ += gap;
    for (const int name : {1, 2}) {
      Submit(name, 1, {.num_more = 2, .stays = stays});
    }
    Submit(3);
    EXPECT_EQ(NextPass()->parts.size(), 3u);
    now_ += milliseconds(100);
    scheduler_.EndPass(PassResults(3, LogitRows()), now_);
    const Pass* next = Look();
    EXPECT_EQ(next, nullptr);
    while (auto job = next == nullptr ? scheduler_.NextToTake() : nullptr) {
      job->Take();
      scheduler_.Taken(std::move(job), now_);
      next = Look();
    }
    FinishAll();
    return next;
  }
  void BeginAll() override {
    if (begins_) SchedulerTest::BeginAll();
  }

  bool begins_ = true;  // what is admitted
};

TEST_F(HoldTest, APassWaitsForThoseThatWereJustAnswered) {
  RunRounds(10, milliseconds(20));
  now_ += milliseconds(10);
  Submit(1);
  EXPECT_THAT(RunPass(), IsEmpty());
  // The others may take twice their time.
  EXPECT_NEAR(HoldMs(), 30, 0.1);
  now_ += milliseconds(10);
  Submit(2);
  EXPECT_THAT(RunPass(), IsEmpty());
  Submit(3);
  // All are back: no need to wait on.
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1)));
}

TEST_F(HoldTest, APassWaitsNoLongerThanAnotherWouldTakeBesidesItsRows) {
  RunRounds(10, milliseconds(60));
  Submit(1);
  EXPECT_THAT(RunPass(), IsEmpty());
  EXPECT_NEAR(HoldMs(), 70, 0.1);
}

// One that stays for another pass is there when who is late joins it.
TEST(PassHoldTest, WhoStaysWaitsOnlyForWhatThatSparesTheOthers) {
  PassTime pass_time;
  for (const int num_rows : {3, 10, 3, 10}) {
    pass_time.Observe(num_rows, milliseconds(70 + 10 * num_rows));
  }
  const auto is_held = [&](const PassHold::Ready& ready, int num_expected) {
    PassHold hold(/*max_share=*/1);
    const PassHold::Clock::time_point now{std::chrono::hours(1)};
    for (int name = 1; name <= num_expected; ++name) {
      hold.Expect(Id(name), now, milliseconds(30));
    }
    hold.set_ready(ready);
    return hold.Holds(now, pass_time);
  };
  EXPECT_TRUE(is_held({.num_sessions = 3}, 1));
  // A quarter of the longest hold is less than what it takes to come back.
  EXPECT_FALSE(is_held({.num_sessions = 3, .anybody_stays = true}, 1));
  EXPECT_TRUE(is_held({.num_sessions = 3, .anybody_stays = true}, 3));
  EXPECT_TRUE(is_held({.num_sessions = 1, .anybody_stays = true}, 1));
  EXPECT_FALSE(is_held({.num_sessions = 1, .anybody_stays = true}, 0));
}

TEST_F(HoldTest, WhoDoesNotComeIsNotWaitedForAnyLonger) {
  RunRounds(10, milliseconds(2));
  Submit(1);
  Submit(2);
  EXPECT_THAT(RunPass(), IsEmpty());
  now_ += milliseconds(13);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1), Pair(2, 1)));
  // The next pass does not wait for it either.
  Submit(1);
  Submit(2);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1), Pair(2, 1)));
}

TEST_F(HoldTest, NobodyIsWaitedForWhoUsuallyTakesLonger) {
  RunRounds(10, milliseconds(80));
  Submit(1);
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
}

TEST_F(HoldTest, RowsThatAreBeingTakenAreWaitedFor) {
  RunRounds(10, milliseconds(2));
  Submit(1, 1, {.num_more = 1});
  Submit(2, 1, {.num_more = 1});
  Submit(3, 1, {.num_more = 1});
  const Pass* const pass = NextPass();
  ASSERT_NE(pass, nullptr);
  now_ += milliseconds(100);
  scheduler_.EndPass(PassResults(3, LogitRows()), now_);
  // One of the three has taken its row.
  auto job = scheduler_.NextToTake();
  job->Take();
  scheduler_.Taken(std::move(job), now_);
  EXPECT_EQ(NextPass(), nullptr);
  TakeAll();
  EXPECT_EQ(RunPass().size(), 3u);
}

// Each of n rows that are taken was followed by a look at all n sessions.
TEST_F(HoldTest, WhileAPassIsHeldForRowsNobodyIsLookedAt) {
  RunRounds(10, milliseconds(2));
  constexpr int kNumSessions = 30;
  for (int name = 1; name <= kNumSessions; ++name) {
    Submit(name, 1, {.num_more = 3});
  }
  ASSERT_EQ(RunPass().size(), size_t{kNumSessions});
  const Pass* const pass = NextPass();
  now_ += milliseconds(100);
  scheduler_.EndPass(PassResults(pass->parts.size(), LogitRows()), now_);
  num_polls_ = 0;
  while (auto job = scheduler_.NextToTake()) {
    if (!scheduler_.IsHeld(now_)) {
      EXPECT_EQ(NextPass(), nullptr);
    }
    job->Take();
    scheduler_.Taken(std::move(job), now_);
  }
  EXPECT_LE(num_polls_, 2 * kNumSessions);
  EXPECT_FALSE(scheduler_.IsHeld(now_));
  EXPECT_EQ(RunPass().size(), size_t{kNumSessions});
}

// While rows are taken a hold is the longest that there is, and once none are
// it is for those alone that were answered.
TEST_F(HoldTest, OnceRowsAreTakenAPassIsHeldForNoneMuchLongerThanUsual) {
  EXPECT_EQ(GoOnBesideOneThatWasAnswered(milliseconds(20), /*stays=*/false),
            nullptr);
  EXPECT_NEAR(HoldMs(), 40, 0.1);
}

TEST_F(HoldTest, OnceRowsAreTakenWhoStaysWaitsAsLongAsThatPays) {
  EXPECT_EQ(GoOnBesideOneThatWasAnswered(milliseconds(20), /*stays=*/true),
            nullptr);
  EXPECT_NEAR(HoldMs(), 70.0 / 3, 0.1);
}

TEST_F(HoldTest, OnceRowsAreTakenWhoStaysWaitsForNobodyWhereThatDoesNotPay) {
  const Pass* const pass =
      GoOnBesideOneThatWasAnswered(milliseconds(60), /*stays=*/true);
  ASSERT_NE(pass, nullptr);
  EXPECT_EQ(pass->parts.size(), 2u);
}

TEST_F(HoldTest, WhoWaitsToBeAdmittedIsLookedAtWhileAPassIsHeld) {
  RunRounds(10, milliseconds(2));
  Submit(2);
  begins_ = false;
  Submit(1);
  EXPECT_EQ(NextPass(), nullptr);
  EXPECT_TRUE(scheduler_.IsHeld(now_));
  Submit(1);  // once more: it waits for the first to end
  EXPECT_FALSE(scheduler_.IsHeld(now_));
}

TEST_F(HoldTest, WorkThatIsAboutToBeginIsWaitedFor) {
  RunRounds(10, milliseconds(80));
  now_ += milliseconds(300);
  Submit(1);
  begins_ = false;
  Submit(2);
  EXPECT_EQ(NextPass(), nullptr);
  begins_ = true;
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1), Pair(2, 1)));
}

TEST_F(HoldTest, RowsOfACallsLastStepAreNotWaitedFor) {
  RunRounds(10, milliseconds(80));
  now_ += milliseconds(300);
  for (const int name : {1, 2}) Submit(name);
  const Pass* const pass = NextPass();
  ASSERT_NE(pass, nullptr);
  now_ += milliseconds(100);
  scheduler_.EndPass(PassResults(2, LogitRows()), now_);
  Submit(3);
  EXPECT_NE(NextPass(), nullptr);
}

TEST_F(HoldTest, WorkWhoseModelDrewAllThatItMayIsNotWaitedFor) {
  RunRounds(10, milliseconds(80));
  now_ += std::chrono::seconds(2);
  Submit(1, 1, {.num_more = 1, .max_drawn = 1});
  const Pass* const pass = NextPass();
  ASSERT_NE(pass, nullptr);
  now_ += milliseconds(100);
  const LogitRows drawn(/*rows=*/{}, /*vocab_size=*/1, TokenSeq{7});
  scheduler_.EndPass(PassResults(1, drawn), now_);
  Submit(3);
  EXPECT_NE(NextPass(), nullptr);
}

TEST_F(HoldTest, WorkThatGoesOnAfterAWrongGuessIsNotWaitedFor) {
  RunRounds(10, milliseconds(2));
  now_ += std::chrono::seconds(2);
  drawn_ = {7};
  Submit(1, 1, {.num_more = 1, .max_drawn = 1});
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(1, 1)));
}

TEST_F(HoldTest, APassInWhichAModelWentOnSaysNothingOfWhatOthersTake) {
  RunRounds(10, milliseconds(60));
  now_ += std::chrono::seconds(2);
  drawn_ = {7};
  Submit(1, 1, {.max_drawn = 1});
  EXPECT_THAT(RunPass(std::chrono::seconds(1)), ElementsAre(Pair(1, 1)));
  Submit(2);
  EXPECT_THAT(RunPass(), IsEmpty());
  EXPECT_NEAR(HoldMs(), 70, 0.1);
}

// Eight sessions that fell into two cohorts, one in a pass while the other is
// on its way for half of a pass, are one again after a few passes, and stay so.
TEST_F(HoldTest, AlternatingCohortsBecomeOne) {
  std::multimap<Clock::time_point, int> arrivals;
  for (int name = 1; name <= 8; ++name) {
    arrivals.emplace(now_ + milliseconds(name <= 4 ? 0 : 50), name);
  }
  std::vector<size_t> sizes;
  while (sizes.size() < 40) {
    if (!arrivals.empty() && arrivals.begin()->first <= now_) {
      const int name = arrivals.begin()->second;
      arrivals.erase(arrivals.begin());
      Submit(name);
      continue;
    }
    const Pass* const pass = NextPass();
    if (pass == nullptr) {
      const auto end = scheduler_.ask_again_at();
      const auto next = arrivals.empty() ? *end : arrivals.begin()->first;
      now_ = end.has_value() ? std::min(*end, next) : next;
      continue;
    }
    sizes.push_back(pass->parts.size());
    const Clock::time_point end = now_ + milliseconds(30);
    // Those that come while the pass runs are submitted before it ends.
    while (!arrivals.empty() && arrivals.begin()->first <= end) {
      const int name = arrivals.begin()->second;
      now_ = arrivals.begin()->first;
      arrivals.erase(arrivals.begin());
      Submit(name);
    }
    now_ = end;
    PassResults results(pass->parts.size(), LogitRows());
    std::vector<int> names;
    for (const auto& part : pass->parts) {
      names.push_back(part.job->work->request().header.session.bytes[0]);
    }
    scheduler_.EndPass(std::move(results), now_);
    TakeAll();
    for (const int name : names) {
      arrivals.emplace(now_ + std::chrono::microseconds(14000 + 100 * name),
                       name);
    }
  }
  for (size_t i = 20; i < sizes.size(); ++i) EXPECT_EQ(sizes[i], 8u) << i;
}

}  // namespace
}  // namespace outrider
