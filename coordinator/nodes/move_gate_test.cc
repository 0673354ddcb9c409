// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/move_gate.h"

#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"
#include "tests/support/loop_timer.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr MoveGate::Clock::time_point kStart{};

TEST(MoveGateTest, OneIsInItAtATimeUntilATextsCostIsKnown) {
  MoveGate gate;
  MoveGate::Turn first = gate.Enter(1, kStart);
  EXPECT_TRUE(first);
  EXPECT_FALSE(gate.IsOpen(kStart));
  EXPECT_FALSE(gate.Enter(1, kStart));
  MoveGate::Turn same = std::move(first);
  EXPECT_FALSE(gate.Enter(1, kStart));
  same = {};
  EXPECT_TRUE(gate.Enter(1, kStart));
}

TEST(MoveGateTest, OneThatTookAWhileKeepsItClosedForFourTimesAsLong) {
  MoveGate gate;
  gate.Enter(1, kStart).End({.taken = milliseconds(100)});
  EXPECT_FALSE(gate.Enter(1, kStart + milliseconds(399)));
  EXPECT_FALSE(gate.IsOpen(kStart + milliseconds(399)));
  EXPECT_TRUE(gate.IsOpen(kStart + milliseconds(400)));
  EXPECT_TRUE(gate.Enter(1, kStart + milliseconds(400)));
}

TEST(MoveGateTest, TheNextComesInWhenWhatTheOneBeforeItTakesIsPaidFor) {
  MoveGate gate;
  gate.Enter(10, kStart).End({.taken = milliseconds(100)});
  const auto begin = kStart + seconds(1);
  MoveGate::Turn first = gate.Enter(20, begin);  // takes 200 ms
  EXPECT_FALSE(gate.Enter(10, begin + milliseconds(799)));
  MoveGate::Turn second = gate.Enter(10, begin + milliseconds(800));
  EXPECT_TRUE(second);
  // 25 ms more than was thought, and a failure, which has taken nothing.
  first.End({.taken = milliseconds(225)});
  EXPECT_FALSE(gate.IsOpen(begin + milliseconds(1299)));
  EXPECT_TRUE(gate.IsOpen(begin + milliseconds(1300)));
  second.End({});
  EXPECT_TRUE(gate.IsOpen(begin + milliseconds(900)));
  EXPECT_FALSE(gate.IsOpen(begin + milliseconds(899)));
}

TEST(MoveGateTest, OpensWhenTheNodeSaysAndThoseOnTheirWayArePaidFor) {
  MoveGate gate;
  gate.Enter(10, kStart)
      .End({.taken = milliseconds(100), .next_at = kStart + seconds(1)});
  EXPECT_FALSE(gate.IsOpen(kStart + milliseconds(999)));
  const auto begin = kStart + seconds(1);
  MoveGate::Turn first = gate.Enter(20, begin);  // takes 200 ms
  MoveGate::Turn second = gate.Enter(10, begin + milliseconds(800));
  EXPECT_TRUE(second);
  // Nobody was there that it took time from.
  first.End({.taken = milliseconds(200), .next_at = begin});
  EXPECT_FALSE(gate.IsOpen(begin + milliseconds(1199)));
  EXPECT_TRUE(gate.IsOpen(begin + milliseconds(1200)));
  second.End({.taken = milliseconds(100), .next_at = begin});
  EXPECT_TRUE(gate.IsOpen(begin));
}

TEST(MoveGateTest, WhatTheNodeHasNotSpentIsNoCredit) {
  MoveGate gate;
  gate.Enter(10, kStart).End({.taken = milliseconds(100)});
  const auto begin = kStart + seconds(10);
  MoveGate::Turn first = gate.Enter(10, begin);
  MoveGate::Turn second = gate.Enter(10, begin + milliseconds(400));
  first.End({.taken = milliseconds(100), .next_at = kStart});
  EXPECT_FALSE(gate.IsOpen(begin + milliseconds(799)));
  EXPECT_TRUE(gate.IsOpen(begin + milliseconds(800)));
}

TEST(MoveGateTest, AnAnswerThatComesLateTakesNothingBack) {
  MoveGate gate;
  gate.Enter(10, kStart).End({.taken = milliseconds(100)});
  MoveGate::Turn first = gate.Enter(10, kStart + seconds(1));
  MoveGate::Turn second = gate.Enter(10, kStart + seconds(2));
  second.End({.taken = milliseconds(100), .next_at = kStart + seconds(9)});
  first.End({.taken = milliseconds(100), .next_at = kStart + seconds(5)});
  EXPECT_FALSE(gate.IsOpen(kStart + milliseconds(8999)));
  EXPECT_TRUE(gate.IsOpen(kStart + seconds(9)));
}

TEST(MoveGateTest, ANodeThatIsBackOwesNothing) {
  MoveGate gate;
  gate.Enter(10, kStart)
      .End({.taken = milliseconds(100), .next_at = kStart + seconds(60)});
  EXPECT_FALSE(gate.IsOpen(kStart + seconds(1)));
  gate.StartAnew();
  EXPECT_TRUE(gate.IsOpen(kStart + seconds(1)));
}

// Nobody has such texts, but a node may say so.
TEST(MoveGateTest, WhatTakesForEverIsNotBelieved) {
  MoveGate gate;
  gate.Enter(1, kStart).End({.taken = std::chrono::hours(100)});
  MoveGate::Turn turn = gate.Enter(1 << 30, kStart + std::chrono::hours(400));
  EXPECT_TRUE(turn);
  EXPECT_TRUE(gate.IsOpen(kStart + std::chrono::hours(404)));
}

TEST(MoveGateTest, FourAreOnTheirWayAtOnce) {
  MoveGate gate;
  gate.Enter(1, kStart).End({.taken = milliseconds(1)});
  std::vector<MoveGate::Turn> turns;
  for (int i = 1; i <= 4; ++i) {
    turns.push_back(gate.Enter(1, kStart + seconds(i)));
    EXPECT_TRUE(turns.back());
  }
  EXPECT_FALSE(gate.IsOpen(kStart + seconds(9)));
  turns.pop_back();
  EXPECT_TRUE(gate.IsOpen(kStart + seconds(9)));
}

TEST(MoveGateTest, OneThatFailedKeepsNobodyOut) {
  MoveGate gate;
  { const MoveGate::Turn failed = gate.Enter(1, kStart); }
  EXPECT_TRUE(gate.Enter(1, kStart));
}

TEST(MoveGateTest, WhoWaitsComesBeforeWhoDoesNot) {
  MoveGate gate;
  MoveGate::Place first(gate);
  MoveGate::Place second(gate);
  EXPECT_FALSE(gate.IsOpen(kStart));
  EXPECT_FALSE(gate.Enter(1, kStart));
  EXPECT_FALSE(second.Enter(1, kStart));
  EXPECT_TRUE(first.Enter(1, kStart));
}

// Those without a rank neither gain nor lose by it.
TEST(MoveGateTest, WhoComesAgainWithItsRankIsBeforeThoseOfLaterRanks) {
  MoveGate gate;
  std::optional<MoveGate::Place> first(std::in_place, gate,
                                       kStart + seconds(1));
  std::optional<MoveGate::Place> without(std::in_place, gate);
  std::optional<MoveGate::Place> third(std::in_place, gate,
                                       kStart + seconds(3));
  std::optional<MoveGate::Place> fourth(std::in_place, gate,
                                        kStart + seconds(4));
  std::optional<MoveGate::Place> second(std::in_place, gate,
                                        kStart + seconds(2));
  std::optional<MoveGate::Place> last(std::in_place, gate);
  for (auto* place : {&first, &without, &second, &third, &fourth, &last}) {
    for (auto* other : {&first, &without, &third, &fourth, &second, &last}) {
      if (!other->has_value()) continue;
      const MoveGate::Turn turn = (*other)->Enter(1, kStart);
      EXPECT_EQ(static_cast<bool>(turn), other == place);
    }
    place->reset();
  }
}

class LineTest : public ::testing::Test {
 protected:
  // Waits for its turn, and keeps the gate closed for so long.
  Task<void> Come(int name, milliseconds share) {
    MoveGate::Turn turn;
    {
      MoveGate::Place place(gate_);
      while (!cancellation_.cancelled()) {
        ++num_looks_;
        turn = place.Enter(1, loop_.now());
        if (turn) break;
        co_await place.WaitForTurn(timer_, cancellation_);
      }
    }
    came_.push_back(name);
    at_.push_back(std::chrono::ceil<milliseconds>(loop_.elapsed()));
    turn.End({.taken = share});
  }
  void Run() {
    while (loop_.RunOne()) {
    }
  }

  testing::EventLoop loop_;
  testing::LoopTimer timer_{loop_};
  Cancellation cancellation_;
  MoveGate gate_;
  std::vector<int> came_;
  std::vector<milliseconds> at_;
  int num_looks_ = 0;
};

TEST_F(LineTest, AllComeInTheirOrderAndAsSoonAsTheyMay) {
  for (const int name : {1, 2, 3, 4})
    StartDetached(Come(name, milliseconds(10)));
  Run();
  EXPECT_THAT(came_, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(at_, ElementsAre(milliseconds(0), milliseconds(40),
                               milliseconds(80), milliseconds(120)));
}

// A few times a second, as other nodes may have become free.
TEST_F(LineTest, AHundredThatWaitForALongTextLookSeldom) {
  MoveGate::Turn taken = gate_.Enter(1, loop_.now());
  for (int name = 0; name < 100; ++name) {
    StartDetached(Come(name, milliseconds(0)));
  }
  while (loop_.elapsed() < seconds(2)) ASSERT_TRUE(loop_.RunOne());
  EXPECT_LE(num_looks_, 100 * 11);
  taken = {};
  Run();
  EXPECT_EQ(came_.size(), 100u);
}

TEST_F(LineTest, WhoLeavesTheLineLetsTheNextOneCome) {
  MoveGate::Turn taken = gate_.Enter(1, loop_.now());
  {
    MoveGate::Place left(gate_);
    StartDetached(Come(1, milliseconds(0)));
    taken = {};
  }
  Run();
  EXPECT_THAT(came_, ElementsAre(1));
}

TEST_F(LineTest, WhoIsCancelledWaitsNoLonger) {
  MoveGate::Turn taken = gate_.Enter(1, loop_.now());
  StartDetached(Come(1, milliseconds(0)));
  cancellation_.Cancel();
  Run();
  EXPECT_THAT(at_, ElementsAre(milliseconds(0)));
}

}  // namespace
}  // namespace outrider
