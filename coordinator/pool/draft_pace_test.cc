// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/draft_pace.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLeastOfDrafts(2000);

TEST(DraftPaceTest, ADrafterThatIsNotKnownHasTheLeast) {
  const DraftPace pace(kLeastOfDrafts);
  EXPECT_EQ(pace.Limit(1), kLeastOfDrafts);
  EXPECT_EQ(pace.Limit(16), kLeastOfDrafts);
}

TEST(DraftPaceTest, AnAnswerOfOnePassTellsHowLongSixteenMayTake) {
  DraftPace pace(kLeastOfDrafts);
  pace.Answered(1, milliseconds(150));
  EXPECT_EQ(pace.Limit(16), kLeastOfDrafts + 8 * 16 * milliseconds(150));
  EXPECT_EQ(pace.Limit(1), kLeastOfDrafts + 8 * milliseconds(150));
}

// What a call takes beside its passes is not less because there are fewer.
TEST(DraftPaceTest, NoCallHasLessThanEightTimesTheSlowestAnswer) {
  DraftPace pace(kLeastOfDrafts);
  pace.Answered(16, milliseconds(2400));
  EXPECT_EQ(pace.Limit(1), kLeastOfDrafts + 8 * milliseconds(2400));
  EXPECT_EQ(pace.Limit(16), kLeastOfDrafts + 8 * milliseconds(2400));
  EXPECT_EQ(pace.Limit(32), kLeastOfDrafts + 8 * 32 * milliseconds(150));
}

TEST(DraftPaceTest, EachDraftGivenUpAsLateMoreThanDoublesTheLimit) {
  DraftPace pace(kLeastOfDrafts);
  for (int i = 0; i < 3; ++i) {
    const milliseconds limit = pace.Limit(4);
    pace.Late(4, limit);
    EXPECT_GE(pace.Limit(4), 2 * limit) << i;
    EXPECT_LE(pace.Limit(4), 3 * limit) << i;
    EXPECT_GE(pace.Limit(16), 8 * limit) << i;
  }
}

TEST(DraftPaceTest, ADrafterThatHangsIsWaitedForHalfAMinuteAtMost) {
  DraftPace pace(kLeastOfDrafts);
  for (int i = 0; i < 100; ++i) pace.Late(4, pace.Limit(4));
  EXPECT_EQ(pace.Limit(4), kLeastOfDrafts + milliseconds(32'000));
}

TEST(DraftPaceTest, CallsThatWereUnderWayTogetherRaiseItOnce) {
  DraftPace pace(kLeastOfDrafts);
  for (int i = 0; i < 8; ++i) pace.Late(4, kLeastOfDrafts);
  EXPECT_LE(pace.Limit(4), 3 * kLeastOfDrafts);
}

}  // namespace
}  // namespace outrider
