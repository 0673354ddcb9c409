// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/timed_step.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"
#include "tests/support/loop_timer.h"

namespace outrider {
namespace {

using ::outrider::testing::EventLoop;
using ::outrider::testing::IsOk;
using ::outrider::testing::LoopTimer;
using ::outrider::testing::StatusIs;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kLongest(30);

// A node that answers a step, however often it is sent, at one time.
class OneStepStub final : public SharedVerifyStub {
 public:
  OneStepStub(EventLoop& loop, milliseconds takes)
      : timer_(loop), answers_at_(loop.now() + takes) {}

  Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, milliseconds timeout,
      Cancellation& cancellation) override {
    steps_.push_back(call.header.step);
    const milliseconds left =
        std::chrono::ceil<milliseconds>(answers_at_ - MonotonicClock::now());
    co_await timer_.Sleep(std::min(left, timeout), cancellation);
    if (cancellation.cancelled()) co_return absl::CancelledError();
    if (left > timeout) co_return absl::DeadlineExceededError("late");
    co_return VerifyReply{.outcome = Verdict{}};
  }
  milliseconds TimeoutOf(const VerifyCall&) const override { return kLongest; }
  Task<absl::StatusOr<bool>> Isolate(const SessionId&, milliseconds,
                                     Cancellation&) override {
    co_return true;
  }
  Task<absl::StatusOr<NodeDescription>> Describe(milliseconds,
                                                 Cancellation&) override {
    co_return NodeDescription();
  }

  const std::vector<uint64_t>& steps() const { return steps_; }

 private:
  LoopTimer timer_;
  const EventLoop::Clock::time_point answers_at_;
  std::vector<uint64_t> steps_;
};

class TimedStepTest : public ::testing::Test {
 protected:
  // Sends a step that appends two tokens to a node that takes so long.
  void Send(milliseconds takes, bool may_go_elsewhere = true) {
    auto stub = std::make_unique<OneStepStub>(loop_, takes);
    stub_ = stub.get();
    node_.stub = std::move(stub);
    StartDetached(
        Run({.may_go_elsewhere = may_go_elsewhere, .may_move = true}));
  }
  // 1 ms a token, so that a text of 100 tokens may take 400.
  void KnowThePace() {
    node_.pace.Answered(node_.pace.Begin(1000), 1000, 1.0, milliseconds(1000));
  }
  void TextComesAfter(milliseconds time) {
    loop_.After(time, [this] { node_.pace.Begin(100); });
  }
  const absl::Status& End() {
    while (!reply_.has_value() && loop_.RunOne()) {
    }
    ended_after_ = loop_.elapsed();
    return reply_->reply.status();
  }

  EventLoop loop_;
  LoopTimer timer_{loop_};
  VerifierNode node_;
  OneStepStub* stub_ = nullptr;
  VerifyCall call_ = {
      .header = {.step = 7, .delta = {.append_tokens = {1, 2}}}};
  Cancellation cancellation_;
  std::optional<TimedReply> reply_;
  EventLoop::Clock::duration ended_after_ = {};

 private:
  Task<void> Run(StepPatience patience) {
    reply_ = co_await SendStep(node_, call_, patience, timer_, cancellation_);
  }
};

TEST_F(TimedStepTest, AStepHasAQuarterOfASecond) {
  Send(/*takes=*/milliseconds(251));
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(ended_after_, milliseconds(250));
  EXPECT_EQ(stub_->steps().size(), 1u);
  EXPECT_FALSE(reply_->had_all_time);
}

TEST_F(TimedStepTest, TextsThatComeAfterAStepGiveItMoreTime) {
  KnowThePace();
  TextComesAfter(milliseconds(100));
  Send(/*takes=*/milliseconds(500));
  EXPECT_THAT(End(), IsOk());
  EXPECT_EQ(ended_after_, milliseconds(500));
  // The same one again: the node had it already.
  EXPECT_EQ(stub_->steps(), std::vector<uint64_t>({7, 7}));
}

TEST_F(TimedStepTest, AStepThatTakesLongerThanTheTextsIsLate) {
  KnowThePace();
  TextComesAfter(milliseconds(100));
  TextComesAfter(milliseconds(400));
  Send(/*takes=*/milliseconds(2000));
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  // Its own two tokens count, too.
  EXPECT_EQ(ended_after_, milliseconds(250 + 4 * (2 * 100 + 2)));
}

TEST_F(TimedStepTest, ATextIsLateAtFourTimesItsTime) {
  KnowThePace();
  call_.header.delta.append_tokens.assign(100, 1);
  Send(/*takes=*/milliseconds(2000));
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(ended_after_, milliseconds(250 + 4 * 100));
  EXPECT_FALSE(reply_->had_all_time);
}

// Sent again it would lose its turn: its limit is looked at again instead.
TEST_F(TimedStepTest, ATextThatOthersDelayIsSentOnce) {
  KnowThePace();
  call_.header.delta.append_tokens.assign(100, 1);
  TextComesAfter(milliseconds(300));
  Send(/*takes=*/milliseconds(1000));
  EXPECT_THAT(End(), IsOk());
  EXPECT_EQ(ended_after_, milliseconds(1000));
  EXPECT_EQ(stub_->steps().size(), 1u);
}

TEST_F(TimedStepTest, ATextOfUnknownPaceGivesAStepAllTheTimeThereIs) {
  TextComesAfter(milliseconds(100));
  Send(/*takes=*/milliseconds(2000));
  EXPECT_THAT(End(), IsOk());
}

TEST_F(TimedStepTest, WithoutAnotherVerifierAStepHasAllTheTimeThereIs) {
  Send(/*takes=*/milliseconds(2000), /*may_go_elsewhere=*/false);
  EXPECT_THAT(End(), IsOk());
}

TEST_F(TimedStepTest, ANodeFoundSilentAsAnotherComesIsNotWaitedFor) {
  Send(/*takes=*/kLongest, /*may_go_elsewhere=*/false);
  loop_.After(milliseconds(2000), [this] { node_.link.pulse.GiveUp(); });
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(ended_after_, milliseconds(2000));
  EXPECT_FALSE(reply_->had_all_time);
}

}  // namespace
}  // namespace outrider
