// SPDX-License-Identifier: Apache-2.0
// A node's quarter for streams that come from elsewhere, shared by coordinators
// that know nothing of each other.
#include <algorithm>
#include <chrono>
#include <vector>

#include "coordinator/nodes/move_gate.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/engine/reprefill_budget.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"
#include "tests/support/loop_timer.h"

namespace outrider {
namespace {

using Clock = MoveGate::Clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kText(100);  // what a text takes of the node

class ReprefillShareTest : public ::testing::Test {
 protected:
  // So many sessions of one coordinator move to the node.
  void MoveAll(MoveGate& gate, int num_sessions) {
    for (int i = 0; i < num_sessions; ++i) StartDetached(Move(gate));
  }
  void Run() {
    while (loop_.RunOne()) {
    }
  }
  // When the last is back.
  Clock::duration last() const { return back_.back(); }

  testing::EventLoop loop_;
  bool has_others_ = true;  // whom the node's time is taken from
  bool tells_ = true;
  std::vector<Clock::duration> back_;

 private:
  Task<void> Move(MoveGate& gate) {
    MoveGate::Turn turn;
    {
      MoveGate::Place place(gate);
      while (!(turn = place.Enter(1, loop_.now()))) {
        co_await place.WaitForTurn(timer_, cancellation_);
      }
    }
    // The node takes in one text after the other, each beside others' work.
    const Clock::time_point submitted = loop_.now();
    free_at_ = std::max(free_at_, submitted) + kText;
    co_await loop_.Sleep(free_at_ - submitted);
    budget_.Spend(has_others_ ? kText : milliseconds(0), submitted);
    back_.push_back(loop_.elapsed());
    MoveGate::Outcome outcome = {.taken = kText};
    if (tells_) outcome.next_at = budget_.opens_at();
    turn.End(outcome);
  }

  testing::LoopTimer timer_{loop_};
  Cancellation cancellation_;
  ReprefillBudget budget_;
  Clock::time_point free_at_ = {};
};

TEST_F(ReprefillShareTest, TwelveCoordinatorsTakeAQuarterTogether) {
  MoveGate gates[12];
  for (MoveGate& gate : gates) MoveAll(gate, 10);
  Run();
  ASSERT_EQ(back_.size(), 120U);
  // The first of each come before the node has told anybody of the others.
  EXPECT_GE(last(), 4 * (120 - 12) * kText);
  EXPECT_LE(last(), 4 * (120 + 12) * kText);
}

TEST_F(ReprefillShareTest, WhoIsAloneHasTheWholeQuarter) {
  MoveGate gate;
  MoveAll(gate, 20);
  Run();
  EXPECT_EQ(last(), (4 * 19 + 1) * kText);
}

TEST_F(ReprefillShareTest, NobodyWaitsWhereNothingIsTakenFromOthers) {
  has_others_ = false;
  MoveGate gate;
  MoveAll(gate, 20);
  Run();
  EXPECT_EQ(last(), 20 * kText);
}

TEST_F(ReprefillShareTest, AnOlderNodeIsSparedByEachForItself) {
  tells_ = false;
  MoveGate gates[2];
  for (MoveGate& gate : gates) MoveAll(gate, 10);
  Run();
  EXPECT_GE(last(), (4 * 9 + 1) * kText);
  EXPECT_LE(last(), (4 * 10 + 1) * kText);
}

}  // namespace
}  // namespace outrider
