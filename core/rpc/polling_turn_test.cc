// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/polling_turn.h"

#include <future>

#include "gtest/gtest.h"

namespace outrider {
namespace {

std::future<bool> StandByOf(PollingTurn& turn) {
  return std::async(std::launch::async, [&turn] { return turn.StandBy(); });
}

TEST(PollingTurnTest, WhoIsQuickKeepsIt) {
  PollingTurn turn;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(turn.End(turn.Begin()));
}

TEST(PollingTurnTest, WhoIsKeptLongLosesItAndGetsItBackTheSameWay) {
  PollingTurn turn;
  const uint64_t first = turn.Begin();
  EXPECT_TRUE(StandByOf(turn).get());
  const uint64_t second = turn.Begin();  // by the one that stood by
  EXPECT_FALSE(turn.End(first));
  EXPECT_TRUE(StandByOf(turn).get());
  EXPECT_FALSE(turn.End(second));
  EXPECT_TRUE(turn.End(turn.Begin()));
}

TEST(PollingTurnTest, WhoSleepsAsNothingComesIsWoken) {
  PollingTurn turn(/*idle_moments=*/0);
  auto taken = StandByOf(turn);
  const uint64_t begun = turn.Begin();
  EXPECT_TRUE(taken.get());
  EXPECT_FALSE(turn.End(begun));
}

TEST(PollingTurnTest, NobodyStandsByOnceItIsClosed) {
  for (const int idle_moments : {0, 100}) {
    PollingTurn turn(idle_moments);
    auto taken = StandByOf(turn);
    turn.Close();
    EXPECT_FALSE(taken.get());
    EXPECT_FALSE(turn.StandBy());
  }
}

}  // namespace
}  // namespace outrider
