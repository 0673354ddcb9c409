// SPDX-License-Identifier: Apache-2.0
// Texts of new streams that are to give way, and for whom other room comes.
#include "core/base/retry_delay.h"
#include "core/testing/named_session.h"
#include "core/testing/scheduler_test.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Id;
using ::outrider::testing::SchedulerTest;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::Pair;

constexpr int kStream = 1;  // has begun
constexpr int kOther = 2;   // has much of the room
constexpr int kText = 3;    // is to give way
constexpr int kLaterText = 4;

class GiveWayTest : public SchedulerTest {
 protected:
  GiveWayTest()
      : SchedulerTest({.prefill_chunk = 16,
                       .max_hold = 0,
                       .sessions = {.num_blocks = 40}}) {
    OpenAll({kStream});
  }

  // Four blocks are left, and the stream wants six more.
  void MarkTheText() {
    Submit(kText, 320);
    RunPass();
    Submit(kStream, 100, {.holds_up_stream = true});
    EXPECT_TRUE(GivesWay(kText));
  }
  bool GivesWay(int name) const {
    return scheduler_.sessions().Find(Id(name))->gives_way_to.has_value();
  }
  void ExpectHasNotEnded(int name) const {
    EXPECT_THAT(StatusOf(name), StatusIs(absl::StatusCode::kUnknown));
    EXPECT_EQ(scheduler_.sessions().num_preempted(), 0);
  }
};

TEST_F(GiveWayTest, RoomThatWasReleasedSparesTheText) {
  Submit(kOther, 240);
  while (!RunPass().empty()) {
  }
  MarkTheText();
  scheduler_.Release(Header(kOther, 0));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(kStream, 16)));
  ExpectHasNotEnded(kText);
}

TEST_F(GiveWayTest, RoomOfACallThatHasGoneSparesTheText) {
  Submit(kOther, 240);
  MarkTheText();
  cancelled_ = {kOther};
  EXPECT_THAT(RunPass(), ElementsAre(Pair(kStream, 16)));
  ExpectHasNotEnded(kText);
}

TEST_F(GiveWayTest, RoomThatWasReleasedSparesOneOfTwoTexts) {
  Submit(kOther, 64);
  while (!RunPass().empty()) {
  }
  for (const int name : {kText, kLaterText}) Submit(name, 224);
  Submit(kStream, 400, {.holds_up_stream = true});
  EXPECT_TRUE(GivesWay(kText));  // and the other one
  scheduler_.Release(Header(kOther, 0));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(kStream, 16)));
  EXPECT_TRUE(IsRefusal(StatusOf(kLaterText)));
  EXPECT_THAT(StatusOf(kText), StatusIs(absl::StatusCode::kUnknown));
}

// The next time that the stream wants room, another text gives it enough.
TEST_F(GiveWayTest, OnceTheStreamHasRoomNothingGivesWayToItAnyMore) {
  Submit(kOther, 240);
  while (!RunPass().empty()) {
  }
  MarkTheText();
  scheduler_.Release(Header(kOther, 0));
  Submit(9);  // whose call is looked at after the stream's
  EXPECT_FALSE(GivesWay(kText));
  while (!endings_.contains(kStream)) RunPass();
  ExpectHasNotEnded(kText);
  Submit(kLaterText, 128);
  RunPass();
  Submit(kStream, 100, {.holds_up_stream = true});
  EXPECT_TRUE(GivesWay(kLaterText));
  EXPECT_THAT(RunPass(), ElementsAre(Pair(kStream, 16)));
  EXPECT_TRUE(IsRefusal(StatusOf(kLaterText)));
  EXPECT_THAT(StatusOf(kText), StatusIs(absl::StatusCode::kUnknown));
  EXPECT_EQ(scheduler_.sessions().num_preempted(), 1);
}

}  // namespace
}  // namespace outrider
