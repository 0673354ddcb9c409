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
  place_.Began(one_);
  EXPECT_FALSE(Enter(other_, hours(1)));
  place_.Leave(one_);
  EXPECT_TRUE(Enter(other_, hours(1)));
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

TEST_F(SuspectPlaceTest, OthersCallsDoNotMatter) {
  place_.Began(other_);
  place_.Leave(other_);
  EXPECT_TRUE(Enter(one_, {}));
  place_.Began(other_);
  place_.Leave(other_);
  EXPECT_FALSE(Enter(other_, {}));
}

}  // namespace
}  // namespace outrider
