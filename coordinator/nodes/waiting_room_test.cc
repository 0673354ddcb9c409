// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/waiting_room.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "coordinator/nodes/node.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"
#include "tests/support/loop_timer.h"

namespace outrider::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using Place = std::unique_ptr<WaitingRoom::Place>;

// No test waits for it.
constexpr std::chrono::hours kLong(1);

class WaitingRoomTest : public ::testing::Test {
 protected:
  // Waits once, then leaves. The place is gone when its number is listed.
  Task<void> WaitAndLeave(Place place, int number) {
    co_await place->Wait(timer_, kLong, cancellation_);
    place.reset();
    left_.push_back(number);
  }
  // Waits once, and stays.
  Task<void> Wait(WaitingRoom::Place& place, int number) {
    co_await place.Wait(timer_, kLong, cancellation_);
    left_.push_back(number);
  }
  // Those that have left before the longest wait is over.
  std::vector<int> AwaitThatLeft(size_t count) {
    while (left_.size() < count && loop_.RunOne() && loop_.elapsed() < kLong) {
    }
    return loop_.elapsed() < kLong ? left_ : std::vector<int>();
  }

  Place Hold(const VerifierNode* at) {
    return room_.Enter({.kind = WaitingRoom::Kind::kHeld, .at = at});
  }

  EventLoop loop_;
  LoopTimer timer_{loop_};
  VerifierNode here_, there_;
  WaitingRoom room_{/*max_waiting=*/3};
  Cancellation cancellation_;
  std::vector<int> left_;
};

TEST_F(WaitingRoomTest, HasNoMorePlacesThanItsLimit) {
  std::vector<Place> places;
  for (int i = 0; i < 3; ++i) places.push_back(room_.Enter({}));
  EXPECT_EQ(room_.Enter({}), nullptr);
  EXPECT_EQ(room_.num_waiting(), 3);
  places.pop_back();
  EXPECT_EQ(room_.num_waiting(), 2);
  EXPECT_NE(room_.Enter({}), nullptr);
}

TEST_F(WaitingRoomTest, OneCallBringsTheFirstAndItsLeavingTheNext) {
  for (int i = 0; i < 3; ++i) StartDetached(WaitAndLeave(room_.Enter({}), i));
  room_.Call(&here_);
  EXPECT_THAT(AwaitThatLeft(3), ElementsAre(0, 1, 2));
}

TEST_F(WaitingRoomTest, TwoCallsAtOnceBringTwo) {
  const Place first = room_.Enter({}), second = room_.Enter({});
  room_.Call(&here_);
  room_.Call(&here_);
  StartDetached(Wait(*second, 2));
  EXPECT_THAT(AwaitThatLeft(1), ElementsAre(2));
  StartDetached(Wait(*first, 1));
  EXPECT_THAT(AwaitThatLeft(2), ElementsAre(2, 1));
}

TEST_F(WaitingRoomTest, ACallWhileTheFirstAsksIsHeardWhenItComesBack) {
  const Place first = room_.Enter({});
  room_.Call(&here_);
  StartDetached(Wait(*first, 1));
  EXPECT_THAT(AwaitThatLeft(1), ElementsAre(1));
}

TEST_F(WaitingRoomTest, WhatHasBegunIsCalledBeforeAllThatIsNew) {
  StartDetached(WaitAndLeave(room_.Enter({}), 3));
  StartDetached(WaitAndLeave(Hold(&here_), 1));
  StartDetached(WaitAndLeave(Hold(/*at=*/nullptr), 2));
  room_.Call(&here_);
  EXPECT_THAT(AwaitThatLeft(1), ElementsAre(1));
  EXPECT_THAT(AwaitThatLeft(3), ElementsAre(1, 2, 3));
}

// It may have room elsewhere, or find none there that it fits.
TEST_F(WaitingRoomTest, WhoMayGoAnywhereIsCalledBesideWhoMayGoThereAlone) {
  const Place any = Hold(/*at=*/nullptr);
  StartDetached(Wait(*any, 1));
  StartDetached(WaitAndLeave(Hold(&there_), 2));
  room_.Call(&there_);
  EXPECT_THAT(AwaitThatLeft(2), ElementsAre(1, 2));
  StartDetached(Wait(*any, 3));
  StartDetached(WaitAndLeave(room_.Enter({}), 4));
  room_.Call(&there_);
  EXPECT_THAT(AwaitThatLeft(4), ElementsAre(1, 2, 3, 4));
}

// It would be told in vain, and the room is another's to take.
TEST_F(WaitingRoomTest, WhatHasBegunElsewhereIsNotCalled) {
  StartDetached(WaitAndLeave(Hold(&there_), 1));
  StartDetached(WaitAndLeave(room_.Enter({}), 2));
  room_.Call(&here_);
  EXPECT_THAT(AwaitThatLeft(1), ElementsAre(2));
  room_.Call(&there_);
  EXPECT_THAT(AwaitThatLeft(2), ElementsAre(2, 1));
}

TEST_F(WaitingRoomTest, WhatOneThatHasBegunNeedsIsForNoNewOne) {
  const Place held = Hold(&here_);
  StartDetached(WaitAndLeave(room_.Enter({}), 2));
  room_.Call(&here_);
  room_.Call(&here_);  // while it goes and asks
  StartDetached(Wait(*held, 1));
  EXPECT_THAT(AwaitThatLeft(1), ElementsAre(1));
  EXPECT_EQ(room_.num_waiting(), 1);
  cancellation_.Cancel();
  EXPECT_THAT(AwaitThatLeft(2), ElementsAre(1, 2));
}

TEST_F(WaitingRoomTest, AnyNumberThatHaveBegunHavePlaces) {
  std::vector<Place> places;
  for (int i = 0; i < 5; ++i) places.push_back(Hold(&here_));
  EXPECT_EQ(room_.num_waiting(), 0);
  for (int i = 0; i < 3; ++i) places.push_back(room_.Enter({}));
  EXPECT_EQ(room_.Enter({}), nullptr);
  EXPECT_NE(places[4], nullptr);
}

// Any client can say that it resumes.
TEST_F(WaitingRoomTest, WhatIsResumedHasAsManyPlacesBesideAndIsCalledFirst) {
  std::vector<Place> places;
  for (int i = 0; i < 2; ++i) places.push_back(room_.Enter({}));
  StartDetached(WaitAndLeave(room_.Enter({}), 2));
  const WaitingRoom::Guest resumed = {.kind = WaitingRoom::Kind::kResumed};
  StartDetached(WaitAndLeave(room_.Enter(resumed), 1));
  for (int i = 0; i < 2; ++i) places.push_back(room_.Enter(resumed));
  EXPECT_NE(places.back(), nullptr);
  EXPECT_EQ(room_.Enter(resumed), nullptr);
  EXPECT_EQ(room_.num_waiting(), 6);
  room_.Call(&here_);
  EXPECT_THAT(AwaitThatLeft(1), ElementsAre(1));
  places.clear();
  EXPECT_THAT(AwaitThatLeft(2), ElementsAre(1, 2));
}

class KeptRoomTest : public WaitingRoomTest {
 protected:
  KeptRoomTest() { long_->WasRefusedBy({&here_}); }

  void Pass(std::chrono::milliseconds time) {
    bool is_over = false;
    loop_.After(time, [&] { is_over = true; });
    while (!is_over) loop_.RunOne();
  }
  static WaitingRoom::Guest New(int text_length) {
    return {.text_length = text_length};
  }
  bool IsKept(const WaitingRoom::Guest& guest = New(99)) {
    return room_.IsKept(here_, guest, /*own=*/nullptr);
  }

  const Place long_ = room_.Enter(New(100));
};

TEST_F(KeptRoomTest, WhoHasWaitedForLongIsPassedNoMoreWhereItWaits) {
  const Place behind = room_.Enter(New(50));
  behind->WasRefusedBy({&here_, &there_});
  EXPECT_FALSE(IsKept());
  Pass(WaitingRoom::kPatience);
  EXPECT_TRUE(IsKept());
  EXPECT_FALSE(IsKept(New(100)));  // it could take no less
  EXPECT_TRUE(room_.IsKept(here_, New(50), behind.get()));
  EXPECT_FALSE(room_.IsKept(there_, New(40), behind.get()));
  EXPECT_FALSE(room_.IsKept(here_, New(40), long_.get()));
  EXPECT_TRUE(room_.IsKept(there_, New(40), nullptr));
}

TEST_F(KeptRoomTest, WhatIsResumedPassesWhatIsNew) {
  const Place held = Hold(&here_);
  held->WasRefusedBy({&here_});
  Pass(WaitingRoom::kPatience);
  EXPECT_FALSE(IsKept({.kind = WaitingRoom::Kind::kResumed}));
}

TEST_F(KeptRoomTest, RoomIsKeptForAWhileAndThenForAsLongIsNot) {
  Pass(WaitingRoom::kPatience);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(IsKept());
    Pass(WaitingRoom::kLongestKept - milliseconds(1));
    EXPECT_TRUE(IsKept());
    Pass(milliseconds(1));
    EXPECT_FALSE(IsKept());
    Pass(WaitingRoom::kLongestKept);
  }
}

// With turns of their own two could leave no time between them.
TEST_F(KeptRoomTest, HoweverManyWaitAllMayAskHalfOfTheTime) {
  constexpr int kLooks = 6000;
  std::vector<Place> others;
  for (int num_waiting = 1; num_waiting <= 3; ++num_waiting) {
    int num_kept = 0;
    for (int i = 0; i < kLooks; ++i) {
      Pass(milliseconds(100));
      if (IsKept(New(10))) ++num_kept;
    }
    EXPECT_NEAR(num_kept, kLooks / 2, 200) << num_waiting;
    others.push_back(room_.Enter(New(100 - num_waiting)));
    if (others.back() != nullptr) others.back()->WasRefusedBy({&here_});
  }
}

// Who comes when a turn is over does not begin one before all could ask.
TEST_F(KeptRoomTest, WhoWaitsWhenATurnIsOverAwaitsTheNext) {
  Pass(WaitingRoom::kPatience);
  EXPECT_TRUE(IsKept());
  const Place other = room_.Enter(New(100));
  other->WasRefusedBy({&there_});
  Pass(WaitingRoom::kLongestKept);
  EXPECT_FALSE(room_.IsKept(there_, New(10), nullptr));
  Pass(WaitingRoom::kLongestKept);
  EXPECT_TRUE(room_.IsKept(there_, New(10), nullptr));
}

TEST_F(KeptRoomTest, WhoIsLetInWhereItAsksLeavesTheRestToOthers) {
  Pass(WaitingRoom::kPatience);
  room_.Call(&here_);
  StartDetached(Wait(*long_, 1));
  EXPECT_THAT(AwaitThatLeft(1), ElementsAre(1));
  Pass(WaitingRoom::kLongestRefusal);
  EXPECT_TRUE(IsKept());
  Pass(milliseconds(1));
  EXPECT_FALSE(IsKept());
  StartDetached(Wait(*long_, 2));
  EXPECT_TRUE(IsKept());
  cancellation_.Cancel();
  EXPECT_THAT(AwaitThatLeft(2), ElementsAre(1, 2));
}

// A node says no only after its pass.
TEST_F(KeptRoomTest, WhereARefusalTookLongTheNextHasTwiceTheTime) {
  const auto ask = [&](int number) {
    room_.Call(&here_);
    StartDetached(Wait(*long_, number));
    AwaitThatLeft(number);
  };
  ask(1);
  Pass(WaitingRoom::kPatience);
  EXPECT_FALSE(IsKept());
  ask(2);
  Pass(2 * WaitingRoom::kPatience);
  EXPECT_TRUE(IsKept());
  Pass(milliseconds(1));
  EXPECT_FALSE(IsKept());
}

TEST_F(WaitingRoomTest, WhoIsCancelledWaitsNoLonger) {
  StartDetached(WaitAndLeave(room_.Enter({}), 1));
  cancellation_.Cancel();
  EXPECT_THAT(AwaitThatLeft(1), ElementsAre(1));
  StartDetached(WaitAndLeave(room_.Enter({}), 2));
  EXPECT_THAT(AwaitThatLeft(2), ElementsAre(1, 2));
}

}  // namespace
}  // namespace outrider::testing
