// SPDX-License-Identifier: Apache-2.0
// Passes that are launched while another one runs, under virtual time.
#include "core/engine/passes_in_flight.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "core/engine/batch_scheduler.h"
#include "core/testing/scheduler_test.h"
#include "core/testing/scripted_work.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Id;
using ::outrider::testing::IsOk;
using ::outrider::testing::SchedulerTest;
using ::outrider::testing::ScriptedWork;
using ::outrider::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// A pass takes 70 ms and 10 ms a row more, and its launch 5 ms. Nobody is
// waited for, but where a test is about that.
class InFlightTest : public SchedulerTest {
 protected:
  explicit InFlightTest(int num_in_flight = 2, double max_hold = 0)
      : SchedulerTest({.prefill_chunk = 32,
                       .max_hold = max_hold,
                       .num_in_flight = num_in_flight,
                       .sessions = {.num_blocks = 200}}) {}

  // Passes that show what they take.
  void ShowTimes() {
    for (const int num_rows : {10, 1, 1, 10, 1, 1}) {
      Submit(100, num_rows);
      RunPass(milliseconds(70 + 10 * num_rows));
    }
    scheduler_.Release(Header(100, 0));
    scheduler_.NoteLaunch(milliseconds(5));
    now_ += std::chrono::seconds(10);
  }
  // The wait in ms, rounded; nothing: not before a pass has ended.
  std::optional<int> AskAgainIn() const {
    const auto at = scheduler_.ask_again_at();
    if (!at.has_value()) return std::nullopt;
    const std::chrono::duration<double, std::milli> time = *at - now_;
    return static_cast<int>(std::lround(time.count()));
  }
  // What passes have taken that ended meanwhile.
  double SecondsOf(const std::function<void()>& meanwhile) {
    const auto sum = [this] {
      const auto metric = scheduler_.metrics().pass_time.Collect();
      return metric.histogram.sample_sum;
    };
    const double before = sum();
    meanwhile();
    return sum() - before;
  }
  // A pass of chunks of 32 tokens takes 390 ms.
  void PassUntilTheNextMayBeLaunched() {
    ASSERT_TRUE(scheduler_.ask_again_at().has_value());
    now_ = *scheduler_.ask_again_at();
  }
};

TEST_F(InFlightTest, WhoeverIsReadyIsLaunchedShortlyBeforeTheEnd) {
  ShowTimes();
  Submit(1);
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(1, 1)));
  EXPECT_EQ(AskAgainIn(), std::nullopt);  // there is nobody yet
  now_ += milliseconds(10);
  Submit(2, 3);
  EXPECT_EQ(AskAgainIn(), 80 - 5 - 10);
  now_ += milliseconds(64);
  EXPECT_THAT(BeginPass(), IsEmpty());
  Submit(3);
  now_ += milliseconds(1);
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(2, 3), Pair(3, 1)));
  EXPECT_EQ(scheduler_.metrics().num_launched_early, 1);
  // Two are as many as there may be.
  Submit(4);
  EXPECT_EQ(AskAgainIn(), std::nullopt);
  EXPECT_THAT(BeginPass(), IsEmpty());
  EndPass(milliseconds(5));
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_THAT(StatusOf(2), StatusIs(absl::StatusCode::kUnknown));
  // The second one begins where the first ended.
  EXPECT_EQ(AskAgainIn(), 70 + 4 * 10 - 5);
  EndPass(milliseconds(110));
  EXPECT_THAT(StatusOf(3), IsOk());
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(4, 1)));
  EndPass();
  EXPECT_EQ(scheduler_.num_jobs(), 0);
}

TEST_F(InFlightTest, EachPassHasTheTimeFromTheEndOfTheOneBeforeIt) {
  ShowTimes();
  Submit(1);
  BeginPass();
  const Clock::time_point start = now_;
  Submit(2);
  PassUntilTheNextMayBeLaunched();
  BeginPass();
  EXPECT_EQ(scheduler_.pass_start(), start);
  EXPECT_NEAR(SecondsOf([this] { EndPass(milliseconds(5)); }), 0.080, 1e-6);
  EXPECT_EQ(scheduler_.pass_start(), now_);
  EXPECT_NEAR(SecondsOf([this] { EndPass(milliseconds(83)); }), 0.083, 1e-6);
  EXPECT_EQ(scheduler_.pass_start(), std::nullopt);
}

TEST_F(InFlightTest, NothingIsLaunchedWhileNobodyKnowsWhatAPassTakes) {
  Submit(1);
  BeginPass();
  Submit(2);
  EXPECT_EQ(AskAgainIn(), std::nullopt);
  now_ += std::chrono::seconds(10);
  EXPECT_THAT(BeginPass(), IsEmpty());
}

TEST_F(InFlightTest, ALaunchCountsForNoMoreThanAPassTakesBesideItsRows) {
  ShowTimes();
  scheduler_.NoteLaunch(std::chrono::seconds(1));
  Submit(1);
  BeginPass();
  Submit(2);
  EXPECT_EQ(AskAgainIn(), 80 - 70);
}

// It is in the next pass, or nobody can tell when this one ends.
TEST_F(InFlightTest, NothingIsLaunchedBesideWorkThatGoesOn) {
  ShowTimes();
  Submit(1, 1, {.num_more = 1});
  BeginPass();
  Submit(2);
  EXPECT_EQ(AskAgainIn(), std::nullopt);
  EndPass();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(1, 1), Pair(2, 1)));
  EndPass();
  drawn_ = {7};
  Submit(1, 1, {.max_drawn = 1});
  BeginPass();
  Submit(2);
  EXPECT_EQ(AskAgainIn(), std::nullopt);
}

class OneInFlightTest : public InFlightTest {
 protected:
  OneInFlightTest() : InFlightTest(/*num_in_flight=*/1) {}
};

TEST_F(OneInFlightTest, NothingIsLaunchedWhereTheModelTakesOnePassAtATime) {
  ShowTimes();
  Submit(1, 70);
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(1, 32)));
  Submit(2);
  EXPECT_EQ(AskAgainIn(), std::nullopt);
  now_ += std::chrono::seconds(10);
  EXPECT_THAT(BeginPass(), IsEmpty());
  EndPass();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(2, 1), Pair(1, 31)));
}

class HeldInFlightTest : public InFlightTest {
 protected:
  HeldInFlightTest() : InFlightTest(/*num_in_flight=*/2, /*max_hold=*/1) {}

  // The session is usually back after so long.
  void RunRounds(int name, milliseconds gap) {
    for (int i = 0; i < 10; ++i) {
      now_ += gap;
      Submit(name);
      RunPass(milliseconds(80));
    }
    now_ += std::chrono::seconds(10);
  }
};

TEST_F(HeldInFlightTest, NothingIsLaunchedBesideWhomThePassMightBeHeldFor) {
  ShowTimes();
  for (const int gap : {20, 60, 90}) {
    const int name = gap;
    RunRounds(name, milliseconds(gap));
    Submit(name);
    EXPECT_THAT(BeginPass(), SizeIs(1));
    Submit(1);
    EXPECT_EQ(AskAgainIn().has_value(), gap > 70) << gap;
    EndPass(milliseconds(80));
    now_ += std::chrono::seconds(10);
    while (!RunPass(milliseconds(80)).empty()) {
    }
    now_ += std::chrono::seconds(10);
  }
}

TEST_F(HeldInFlightTest, WhoWasAnsweredBeforeIsWaitedForAsBetweenPasses) {
  ShowTimes();
  RunRounds(1, milliseconds(100));
  RunRounds(2, milliseconds(400));
  Submit(1);
  RunPass(milliseconds(80));
  Submit(2);
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(2, 1)));
  now_ += milliseconds(30);
  Submit(3);
  PassUntilTheNextMayBeLaunched();
  // The first one should be back 25 ms from here.
  EXPECT_THAT(BeginPass(), IsEmpty());
  EXPECT_EQ(AskAgainIn(), 70);
  Submit(1);
  EXPECT_EQ(AskAgainIn(), 0);  // all are back
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(1, 1), Pair(3, 1)));
}

// A prompt of which two passes have a chunk.
class PromptInFlightTest : public InFlightTest {
 protected:
  void BeginBoth(int num_tokens = 200) {
    ShowTimes();
    RequestHeader header = Header(1, num_tokens);
    std::iota(header.delta.append_tokens.begin(),
              header.delta.append_tokens.end(), 0);
    Submit(header, {.on_take = [](const LogitRows& rows) {
             EXPECT_EQ(rows.num_rows(), 1);
           }});
    EXPECT_THAT(BeginPass(), ElementsAre(Pair(1, 32)));
    EXPECT_EQ(AskAgainIn(), 70 + 320 - 5);
    PassUntilTheNextMayBeLaunched();
    EXPECT_THAT(BeginPass(), SizeIs(1));
    num_finished_ = 0;
  }
  int length() const {
    const NodeSession* session = scheduler_.sessions().Find(Id(1));
    return session == nullptr ? 0 : session->log.length();
  }
};

TEST_F(PromptInFlightTest, EachHasWhatComesAfterTheOtherAndTheLastItsRows) {
  BeginBoth(/*num_tokens=*/75);
  const Extension& second = begun_[1]->extensions[0];
  EXPECT_EQ(second.cached_length, 32);
  EXPECT_EQ(second.tokens.front(), 32);
  EXPECT_EQ(second.num_rows, 0);
  EXPECT_EQ(length(), 0);
  EndPass();
  EXPECT_EQ(length(), 32);
  PassUntilTheNextMayBeLaunched();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(1, 11)));
  const Extension& third = begun_[1]->extensions[0];
  EXPECT_EQ(third.cached_length, 64);
  EXPECT_EQ(third.tokens.front(), 64);
  EXPECT_EQ(third.num_rows, 1);
  EndPass();
  EXPECT_EQ(AskAgainIn(), std::nullopt);
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
  EndPass();
  EXPECT_THAT(StatusOf(1), IsOk());
  EXPECT_EQ(num_finished_, 1);
  EXPECT_EQ(num_rows_[1], 1);
  EXPECT_EQ(length(), 75);
}

TEST_F(PromptInFlightTest, OneThatFindsNoRoomInTheSecondPassIsInTheThird) {
  ShowTimes();
  Submit(1, 100);
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(1, 32)));
  Submit(2, 32);
  Submit(3, 100, {.holds_up_stream = true});
  PassUntilTheNextMayBeLaunched();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(3, 32)));
  EndPass();
  PassUntilTheNextMayBeLaunched();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(3, 32)));
  cancelled_.insert(3);
  EndPass();
  EndPass();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(2, 32)));
  EXPECT_THAT(StatusOf(3), StatusIs(absl::StatusCode::kCancelled));
  EndPass();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(1, 32)));
  EXPECT_EQ(begun_[0]->extensions[0].cached_length, 32);
}

TEST_F(PromptInFlightTest, OneWhoseCallerGoesEndsOnceBothHave) {
  BeginBoth();
  cancelled_.insert(1);
  EndPass();
  EXPECT_EQ(AskAgainIn(), std::nullopt);
  // It is in no pass that others are in.
  Submit(2);
  PassUntilTheNextMayBeLaunched();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(2, 1)));
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
  EndPass();
  EXPECT_THAT(BeginPass(), IsEmpty());
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kCancelled));
  EndPass();
  EXPECT_EQ(num_finished_, 2);
  EXPECT_EQ(scheduler_.sessions().num_sessions(), 1);
}

TEST_F(PromptInFlightTest, OneWhoseSessionIsReleasedDoesToo) {
  BeginBoth();
  scheduler_.Release(Header(1, 0));
  EndPass();
  EXPECT_THAT(BeginPass(), IsEmpty());
  EXPECT_EQ(num_finished_, 0);
  EndPass();
  EXPECT_THAT(BeginPass(), IsEmpty());
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(scheduler_.sessions().num_sessions(), 0);
}

TEST_F(PromptInFlightTest, OneThatFailsInTheFirstEndsWithThatAfterTheSecond) {
  BeginBoth();
  results_[1] = absl::InternalError("of the first");
  EndPass();
  results_.clear();
  EXPECT_EQ(num_finished_, 0);
  EXPECT_EQ(length(), 0);
  EXPECT_EQ(AskAgainIn(), std::nullopt);
  EndPass();
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(endings_[1].status.message(), "of the first");
  EXPECT_EQ(num_finished_, 1);
  EXPECT_EQ(scheduler_.sessions().num_sessions(), 0);
}

TEST_F(PromptInFlightTest, OneThatIsGivenUpWhileItWaitsForRoomEndsAfterIt) {
  ShowTimes();
  Submit(1, 100);
  BeginPass();
  Submit(2, 100, {.holds_up_stream = true});
  PassUntilTheNextMayBeLaunched();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(2, 32)));
  cancelled_.insert(1);
  BeginPass();
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kUnknown));
  EndPass();
  BeginPass();
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kCancelled));
}

// A pass without rows would be taken for one that shows what rows take.
TEST_F(PromptInFlightTest, WhereItsCallerGoesAsItIsLookedForThereIsNoPass) {
  ShowTimes();
  int num_polls_left = 1;
  RequestHeader header = Header(1, 100);
  scheduler_.Submit(
      std::make_unique<ScriptedWork>(
          Work::Request{.header = header,
                        .is_cancelled = [&] { return num_polls_left-- <= 0; }},
          Script()),
      now_);
  BeginAll();
  num_polls_left = 10;
  BeginPass();
  PassUntilTheNextMayBeLaunched();
  num_polls_left = 1;
  EXPECT_EQ(NextPass(), nullptr);
  EXPECT_EQ(scheduler_.metrics().num_launched_early, 0);
  EndPass();
}

TEST_F(PromptInFlightTest, OneThatFailsWhileItWaitsForRoomEndsWithThat) {
  ShowTimes();
  Submit(1, 100);
  BeginPass();
  Submit(2, 40, {.holds_up_stream = true});
  PassUntilTheNextMayBeLaunched();
  EXPECT_THAT(BeginPass(), ElementsAre(Pair(2, 32)));
  results_[1] = absl::InternalError("of the first");
  EndPass();
  BeginPass();
  EXPECT_THAT(StatusOf(1), StatusIs(absl::StatusCode::kInternal));
  EndPass();
  EXPECT_THAT(RunPass(), ElementsAre(Pair(2, 8)));
  EXPECT_THAT(StatusOf(2), IsOk());
}

TEST_F(PromptInFlightTest, ADeviceLostUnderTheFirstEndsAllWorkOfTheSecondToo) {
  BeginBoth();
  Submit(2);
  Submit(3, 100);
  results_[1] = absl::UnavailableError("the device fell off the bus");
  EndPass();
  EXPECT_TRUE(scheduler_.is_lost());
  EXPECT_THAT(BeginPass(), IsEmpty());
  results_.clear();  // the second one's rows came nevertheless
  EndPass();
  EXPECT_THAT(BeginPass(), IsEmpty());
  for (const int name : {1, 2, 3}) {
    EXPECT_THAT(StatusOf(name), StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_EQ(num_finished_, 3);
  EXPECT_EQ(scheduler_.num_jobs(), 0);
}

TEST_F(PromptInFlightTest, RowsOfTheSecondAreNotServedAfterTheFirstLostIt) {
  ShowTimes();
  Submit(1);
  BeginPass();
  Submit(2);
  PassUntilTheNextMayBeLaunched();
  BeginPass();
  results_[1] = absl::UnavailableError("the device fell off the bus");
  EndPass();
  EndPass();
  EXPECT_THAT(StatusOf(2), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(PromptInFlightTest, ADeviceIsLostThoughNobodysRowsAreAskedForAnyMore) {
  BeginBoth();
  results_[1] = absl::InternalError("of the first");
  EndPass();
  results_[1] = absl::UnavailableError("the device fell off the bus");
  EndPass();
  EXPECT_TRUE(scheduler_.is_lost());
}

TEST_F(PromptInFlightTest, ADeviceLostUnderTheSecondLeavesTheFirstItsRows) {
  ShowTimes();
  Submit(1);
  BeginPass();
  Submit(2);
  PassUntilTheNextMayBeLaunched();
  BeginPass();
  EndPass();
  EXPECT_THAT(StatusOf(1), IsOk());
  results_[2] = absl::UnavailableError("the device fell off the bus");
  EndPass();
  EXPECT_THAT(StatusOf(2), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace outrider
