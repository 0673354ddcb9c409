// SPDX-License-Identifier: Apache-2.0
#include "core/base/side_task.h"

#include <coroutine>
#include <memory>
#include <thread>
#include <utility>

#include "core/testing/gate.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Gate;

Task<std::unique_ptr<int>> WaitFor(Gate& gate) {
  co_await gate;
  co_return std::make_unique<int>(7);
}
Task<std::unique_ptr<int>> AtOnce() { co_return std::make_unique<int>(7); }

Task<void> JoinInto(SideTask<std::unique_ptr<int>>& side, bool& joined) {
  co_await side.Join();
  joined = true;
}

TEST(SideTaskTest, RunsBesideItsOwnerFromTheStart) {
  Gate gate;
  SideTask<std::unique_ptr<int>> side(WaitFor(gate));
  EXPECT_FALSE(side.is_done());
  gate.Open();
  ASSERT_TRUE(side.is_done());
  EXPECT_EQ(*side.Take(), 7);
}

TEST(SideTaskTest, OneThatNeverWaitsIsDoneAtOnce) {
  SideTask<std::unique_ptr<int>> side(AtOnce());
  ASSERT_TRUE(side.is_done());
  bool joined = false;
  StartDetached(JoinInto(side, joined));
  EXPECT_TRUE(joined);
}

TEST(SideTaskTest, WhoJoinsGoesOnWhenItIsDone) {
  Gate gate;
  SideTask<std::unique_ptr<int>> side(WaitFor(gate));
  bool joined = false;
  StartDetached(JoinInto(side, joined));
  EXPECT_FALSE(joined);
  gate.Open();
  EXPECT_TRUE(joined);
}

Task<void> OwnAndEnd(Gate& gate, bool& ended) {
  {
    SideTask<std::unique_ptr<int>> side(WaitFor(gate));
    co_await side.Join();
  }
  ended = true;
}

// The owner goes away on the thread that ends the task, within its last words.
TEST(SideTaskTest, ItsOwnerMayGoAsSoonAsItHasJoined) {
  for (int i = 0; i < 100; ++i) {
    Gate gate;
    bool ended = false;
    StartDetached(OwnAndEnd(gate, ended));
    std::thread([&] { gate.Open(); }).join();
    EXPECT_TRUE(ended);
  }
}

// Done and joined at the same moment: exactly one of the two goes on.
TEST(SideTaskTest, JoiningRacesWithTheEnd) {
  for (int i = 0; i < 1000; ++i) {
    Gate gate;
    SideTask<std::unique_ptr<int>> side(WaitFor(gate));
    std::thread ending([&] { gate.Open(); });
    bool joined = false;
    StartDetached(JoinInto(side, joined));
    ending.join();
    EXPECT_TRUE(joined);
    EXPECT_EQ(*side.Take(), 7);
  }
}

}  // namespace
}  // namespace outrider
