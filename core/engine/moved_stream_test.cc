// SPDX-License-Identifier: Apache-2.0
// What a stream that moves to a node costs the others there.
#include <chrono>

#include "core/engine/batch_scheduler.h"
#include "core/testing/scheduler_test.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::SchedulerTest;
using ::outrider::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::Pair;

// What a stream that moves here takes of others' time keeps the next one away
// for four times as long.
class MovedStreamTest : public SchedulerTest {
 protected:
  void Move(int name, int num_tokens, bool has_begun = true) {
    RequestHeader header = Header(name, num_tokens);
    header.is_moved = true;
    Submit(header, {.holds_up_stream = has_begun});
  }
  // The next one may come then.
  double NextAfter(int name) { return endings_.at(name).next_reprefill_in; }
  static constexpr double kPass = 0.1;
};

TEST_F(MovedStreamTest, CostsNothingWhereNobodyIs) {
  Move(8, 30);
  const auto begun = now_;
  RunPass(milliseconds(100));
  EXPECT_LE(NextAfter(8), EngineMetrics::Seconds(begun - now_));
  EXPECT_EQ(scheduler_.metrics().reprefill_time_alone, 100'000'000);
  EXPECT_EQ(scheduler_.metrics().reprefill_time_beside_others, 0);
}

TEST_F(MovedStreamTest, CostsItsRowsOfAPassWithOthers) {
  OpenAll({1});
  Submit(1, 2);
  Move(9, 6);
  RunPass(milliseconds(100));  // it has three quarters of the rows
  EXPECT_NEAR(NextAfter(9), 4 * 0.075 - kPass, 1e-9);
  EXPECT_EQ(scheduler_.metrics().reprefill_time_beside_others, 75'000'000);
}

// They draft, or come while the pass runs.
TEST_F(MovedStreamTest, CostsThoseWhoAreInNoPassToo) {
  OpenAll({1});
  Move(9, 30);
  RunPass(milliseconds(100));
  EXPECT_NEAR(NextAfter(9), 4 * kPass - kPass, 1e-9);
}

TEST_F(MovedStreamTest, CostsOpeningsThatWaitAfterIt) {
  Submit(2, 30);
  Move(9, 32);
  EXPECT_THAT(RunPass(milliseconds(100)), ElementsAre(Pair(9, 32)));
  EXPECT_NEAR(NextAfter(9), 4 * kPass - kPass, 1e-9);
}

TEST_F(MovedStreamTest, CostsAsMuchIfItIsGivenUp) {
  OpenAll({1});
  Move(9, 64);
  RunPass(milliseconds(100));
  cancelled_.insert(9);
  RunPass(milliseconds(100));
  EXPECT_THAT(StatusOf(9), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_NEAR(NextAfter(9), 4 * kPass - kPass, 1e-9);
}

TEST_F(MovedStreamTest, CostsAsMuchIfItHadNoTokenYet) {
  OpenAll({1});
  Move(9, 30, /*has_begun=*/false);
  RunPass(milliseconds(100));
  EXPECT_NEAR(NextAfter(9), 4 * kPass - kPass, 1e-9);
}

TEST_F(MovedStreamTest, SharesTheAccountWithOthersThatMove) {
  OpenAll({1});
  for (const int name : {8, 9}) Move(name, 16);
  RunPass(milliseconds(100));
  EXPECT_NEAR(NextAfter(8), 4 * kPass / 2 - kPass, 1e-9);
  EXPECT_NEAR(NextAfter(9), 4 * kPass - kPass, 1e-9);
}

// A client resumes a stream, or its blocks had been taken.
TEST_F(MovedStreamTest, SaysNothingOfTextsThatComeUnasked) {
  OpenAll({1});
  Submit(7, 30, {.holds_up_stream = true});
  RunPass(milliseconds(100));
  EXPECT_EQ(scheduler_.metrics().reprefill_time_beside_others, 100'000'000);
  Move(9, 30);
  RunPass(milliseconds(100));
  EXPECT_NEAR(NextAfter(9), 4 * kPass - kPass, 1e-9);
}

}  // namespace
}  // namespace outrider
