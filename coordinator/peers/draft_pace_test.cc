// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/draft_pace.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

class DraftPaceTest : public ::testing::Test {
 protected:
  void Took(double draft_seconds, double saved_seconds) {
    pace_.Took(draft_seconds, saved_seconds, now_);
  }
  bool IsWorthAsking() const { return pace_.IsWorthAsking(now_); }
  // How long it is left alone from now on.
  seconds Pause() {
    const auto begin = now_;
    while (!IsWorthAsking()) now_ += milliseconds(100);
    return duration_cast<seconds>(now_ - begin);
  }

  DraftPace pace_;
  DraftPace::Clock::time_point now_ = {};
};

TEST_F(DraftPaceTest, ADrafterThatSavesMoreThanItTakesIsAlwaysAsked) {
  for (int i = 0; i < 1000; ++i) {
    Took(0.010, i % 2 == 0 ? 0.025 : 0);
    ASSERT_TRUE(IsWorthAsking());
  }
}

TEST_F(DraftPaceTest, OneThatLosesALittleEachTimeIsLeftAloneAfterAWhile) {
  int num_asked = 0;
  while (IsWorthAsking()) {
    Took(0.010, 0.005);
    ++num_asked;
  }
  EXPECT_GE(num_asked, 50);
  EXPECT_LE(num_asked, 52);
}

TEST_F(DraftPaceTest, OneCallThatTakesVeryLongIsEnough) {
  Took(12, 0.003);
  EXPECT_FALSE(IsWorthAsking());
}

TEST_F(DraftPaceTest, ItIsLeftAloneForTwentyTimesWhatItLost) {
  Took(2, 0);
  EXPECT_EQ(Pause(), seconds(40));
}

TEST_F(DraftPaceTest, APauseTwiceAsLongFollowsUpToAMinute) {
  for (const int expected : {6, 12, 24, 48, 60, 60}) {
    Took(0.3, 0);
    EXPECT_EQ(Pause(), seconds(expected));
  }
}

TEST_F(DraftPaceTest, OneThatHasEarnedItsKeepSinceBeginsAnew) {
  for (int i = 0; i < 4; ++i) {
    Took(0.3, 0);
    Pause();
  }
  for (int i = 0; i < 30; ++i) Took(0.01, 0.02);  // as much credit as it gets
  Took(0.6, 0);
  EXPECT_EQ(Pause(), seconds(7));  // 20 times 0.35 s
}

TEST_F(DraftPaceTest, CreditIsLimited) {
  for (int i = 0; i < 10000; ++i) Took(0.01, 0.02);
  Took(0.6, 0);
  EXPECT_FALSE(IsWorthAsking());
}

TEST_F(DraftPaceTest, CallsThatBeganBeforeThePauseDoNotMakeItLonger) {
  Took(0.3, 0);
  for (int i = 0; i < 100; ++i) Took(5, 0);
  EXPECT_EQ(Pause(), seconds(6));
  EXPECT_TRUE(IsWorthAsking());
}

TEST_F(DraftPaceTest, EachWayToJudgeDraftsHasItsOwn) {
  DraftPaces paces;
  paces.Of(RuleKind::kBlock, /*is_greedy=*/false).Took(12, 0, now_);
  const auto is_asked = [&](RuleKind rule, bool is_greedy) {
    return paces.Of(rule, is_greedy).IsWorthAsking(now_);
  };
  EXPECT_FALSE(is_asked(RuleKind::kBlock, false));
  EXPECT_TRUE(is_asked(RuleKind::kRejection, false));
  EXPECT_TRUE(is_asked(RuleKind::kCoupled, false));
  EXPECT_TRUE(is_asked(RuleKind::kBlock, true));
  paces.Of(RuleKind::kRejection, /*is_greedy=*/true).Took(12, 0, now_);
  EXPECT_FALSE(is_asked(RuleKind::kBlock, true));
}

}  // namespace
}  // namespace outrider
