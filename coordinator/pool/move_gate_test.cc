// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/move_gate.h"

#include <utility>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

constexpr MoveGate::Clock::time_point kStart{};

TEST(MoveGateTest, OneIsInItAtATime) {
  MoveGate gate;
  MoveGate::Turn first = gate.Enter(kStart);
  EXPECT_TRUE(first);
  EXPECT_FALSE(gate.IsOpen(kStart));
  EXPECT_FALSE(gate.Enter(kStart));
  MoveGate::Turn same = std::move(first);
  EXPECT_FALSE(gate.Enter(kStart));
  same = {};
  EXPECT_TRUE(gate.Enter(kStart));
}

TEST(MoveGateTest, OneThatTookAWhileKeepsItClosedForFourTimesAsLong) {
  MoveGate gate;
  gate.Enter(kStart).End(milliseconds(100));
  EXPECT_FALSE(gate.Enter(kStart + milliseconds(399)));
  EXPECT_EQ(gate.Wait(kStart + milliseconds(150)), milliseconds(250));
  EXPECT_FALSE(gate.IsOpen(kStart + milliseconds(399)));
  EXPECT_TRUE(gate.IsOpen(kStart + milliseconds(400)));
  EXPECT_TRUE(gate.Enter(kStart + milliseconds(400)));
}

TEST(MoveGateTest, OneThatFailedKeepsNobodyOut) {
  MoveGate gate;
  { const MoveGate::Turn failed = gate.Enter(kStart); }
  EXPECT_TRUE(gate.Enter(kStart));
}

}  // namespace
}  // namespace outrider
