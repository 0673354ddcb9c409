// SPDX-License-Identifier: Apache-2.0
#include "core/session/suspect_place.h"

#include <chrono>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class SuspectPlaceTest : public ::testing::Test {
 protected:
  bool Enter(const SessionId& session, SuspectPlace::Clock::duration after) {
    return place_.Enter(session, start_ + after);
  }

  const SuspectPlace::Clock::time_point start_{hours(1)};
  const SessionId one_ = SessionId::Random();
  const SessionId other_ = SessionId::Random();
  SuspectPlace place_;
};

TEST_F(SuspectPlaceTest, OneSuspectHasItUntilItsCallHasEnded) {
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_FALSE(Enter(other_, {}));
  EXPECT_TRUE(place_.Began(one_));
  EXPECT_FALSE(Enter(other_, hours(1)));
  place_.Ended();
  EXPECT_TRUE(Enter(other_, hours(1)));
}

// Its caller may have gone long before its pass is over.
TEST_F(SuspectPlaceTest, AReleaseFreesItOnlyWhereNoCallIsAtWork) {
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_TRUE(place_.Began(one_));
  place_.Released(one_);
  EXPECT_FALSE(Enter(other_, hours(1)));
  place_.Ended();
  EXPECT_TRUE(Enter(other_, hours(1)));
  place_.Released(other_);
  EXPECT_TRUE(Enter(one_, hours(1)));
}

TEST_F(SuspectPlaceTest, TheEndOfAnEarlierCallDoesNotFreeItUnderALaterOne) {
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_TRUE(place_.Began(one_));
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_TRUE(place_.Began(one_));
  place_.Ended();
  EXPECT_FALSE(Enter(other_, hours(1)));
  place_.Ended();
  EXPECT_TRUE(Enter(other_, hours(1)));
}

TEST_F(SuspectPlaceTest, NorUnderOneThatIsStillToCome) {
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_TRUE(place_.Began(one_));
  EXPECT_TRUE(Enter(one_, milliseconds(1)));
  place_.Ended();
  EXPECT_FALSE(Enter(other_, milliseconds(2)));
  EXPECT_TRUE(place_.Began(one_));
  place_.Ended();
  EXPECT_TRUE(Enter(other_, milliseconds(3)));
}

TEST_F(SuspectPlaceTest, AReleaseSaysThatNoOtherCallWillCome) {
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_TRUE(place_.Began(one_));
  EXPECT_TRUE(Enter(one_, milliseconds(1)));
  place_.Released(one_);
  place_.Ended();
  EXPECT_TRUE(Enter(other_, milliseconds(2)));
}

TEST_F(SuspectPlaceTest, WhoAsksAgainStillHasIt) {
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_TRUE(Enter(one_, milliseconds(1)));
  EXPECT_FALSE(Enter(other_, milliseconds(1)));
}

TEST_F(SuspectPlaceTest, WhoNeverComesLosesIt) {
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_FALSE(Enter(other_, SuspectPlace::kPatience - milliseconds(1)));
  EXPECT_TRUE(Enter(other_, SuspectPlace::kPatience));
  EXPECT_FALSE(Enter(one_, SuspectPlace::kPatience));
}

TEST_F(SuspectPlaceTest, WhoWaitsForItIsToldWhenItIsFree) {
  Enter(one_, {});
  Cancellation freed;
  const SuspectPlace::Waiter waiter(place_, freed);
  EXPECT_FALSE(Enter(other_, {}));
  EXPECT_TRUE(place_.Began(one_));
  place_.Released(one_);
  EXPECT_FALSE(freed.cancelled());
  place_.Ended();
  EXPECT_TRUE(freed.cancelled());
  EXPECT_TRUE(Enter(other_, {}));
}

TEST_F(SuspectPlaceTest, WhoHasStoppedWaitingIsNotTold) {
  Enter(one_, {});
  Cancellation freed;
  { const SuspectPlace::Waiter waiter(place_, freed); }
  place_.Released(one_);
  EXPECT_FALSE(freed.cancelled());
}

TEST_F(SuspectPlaceTest, OthersCallsDoNotMatter) {
  EXPECT_FALSE(place_.Began(other_));
  place_.Released(other_);
  EXPECT_TRUE(Enter(one_, {}));
  EXPECT_FALSE(place_.Began(other_));
  place_.Released(other_);
  EXPECT_FALSE(Enter(other_, {}));
}

}  // namespace
}  // namespace outrider
