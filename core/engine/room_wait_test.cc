// SPDX-License-Identifier: Apache-2.0
#include "core/engine/room_wait.h"

#include <chrono>
#include <memory>

#include "core/testing/named_session.h"
#include "core/testing/scripted_work.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Id;
using ::outrider::testing::ScriptedWork;

class RoomWaitTest : public ::testing::Test {
 protected:
  RoomWaitTest() {
    old_.age_rank = 1;
    middle_.age_rank = 2;
    young_.age_rank = 3;
  }

  static Job MakeJob() {
    return {
        std::make_unique<ScriptedWork>(Work::Request(), ScriptedWork::Script()),
        Job::Clock::time_point()};
  }

  NodeSession old_{Id(1)};
  NodeSession middle_{Id(2)};
  NodeSession young_{Id(3)};
  RoomWait room_;
};

TEST_F(RoomWaitTest, TheOldestHoldsBackWhoIsYoungerUntilItHasRoom) {
  Job one = MakeJob();
  Job other = MakeJob();
  room_.FoundNone(one, &middle_, /*comes_soon=*/true);
  EXPECT_TRUE(room_.HoldsBack(&young_));
  EXPECT_TRUE(room_.HoldsBack(nullptr));
  EXPECT_FALSE(room_.HoldsBack(&middle_));
  EXPECT_FALSE(room_.HoldsBack(&old_));
  room_.FoundNone(other, &old_, /*comes_soon=*/true);
  EXPECT_TRUE(room_.HoldsBack(&middle_));
  room_.Ended(old_.id);
  EXPECT_FALSE(room_.HoldsBack(nullptr));
}

// Others have taken what would have been enough.
TEST_F(RoomWaitTest, WhoNoLongerGetsRoomSoonHoldsNobodyBack) {
  Job job = MakeJob();
  room_.FoundNone(job, &old_, /*comes_soon=*/true);
  room_.Changed();
  EXPECT_FALSE(room_.WasTried(job));
  room_.FoundNone(job, &old_, /*comes_soon=*/false);
  EXPECT_TRUE(room_.WasTried(job));
  EXPECT_FALSE(room_.HoldsBack(&young_));
}

TEST_F(RoomWaitTest, OpeningsHoldNobodyBack) {
  Job opening = MakeJob();
  room_.FoundNone(opening, nullptr, /*comes_soon=*/true);
  EXPECT_FALSE(room_.HoldsBack(&young_));
}

TEST_F(RoomWaitTest, AStreamThatWasRefusedIsAwaitedUntilItHasRoom) {
  const Job::Clock::time_point start;
  room_.Refused(old_.id, start);
  room_.Refused(young_.id, start);
  room_.Ended(old_.id);  // the call, that is
  room_.Settled(young_.id);
  EXPECT_TRUE(room_.AwaitsStream(start));
  room_.Settled(old_.id);
  EXPECT_FALSE(room_.AwaitsStream(start));
}

TEST_F(RoomWaitTest, AStreamThatDoesNotComeAgainIsNotAwaitedForEver) {
  const Job::Clock::time_point start;
  const auto end = start + RoomWait::kComesAgain;
  room_.Refused(old_.id, start);
  room_.Expire(end - std::chrono::milliseconds(1));
  EXPECT_TRUE(room_.AwaitsStream(end - std::chrono::milliseconds(1)));
  EXPECT_FALSE(room_.AwaitsStream(end));
}

// Its round waits as long, each time that it asks a full drafter.
TEST_F(RoomWaitTest, WhatHoldsUpNoStreamWaitsForATenthOfASecond) {
  Job draft = MakeJob();
  const Job::Clock::time_point now = Job::Clock::now();
  EXPECT_FALSE(room_.Waits(draft, now));
  EXPECT_FALSE(room_.Waits(draft, now + std::chrono::milliseconds(100)));
  EXPECT_TRUE(room_.Waits(draft, now + std::chrono::milliseconds(101)));
}

}  // namespace
}  // namespace outrider
