// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/miss_recovery.h"

#include "core/session/token_log.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;

// A mirror that believes the node to hold four of six committed tokens.
class RecoverFromTest : public ::testing::Test {
 protected:
  RecoverFromTest() {
    committed_.Append({10, 11, 12, 13, 14, 15});
    cache_.Acknowledged(4, incarnation_);
  }

  const SessionId session_ = SessionId::Random();
  const Incarnation incarnation_ = Incarnation::Random();
  TokenLog committed_{session_};
  CacheMirror cache_;
  RoundStats::Link link_;
};

TEST_F(RecoverFromTest, AShorterCacheIsFilledFromWhereItEndsInTheSameLife) {
  RecoverFrom({.reason = MissReason::kLength, .cached_length = 2}, cache_,
              link_);
  EXPECT_EQ(cache_.incarnation(), incarnation_);
  EXPECT_EQ(cache_.CatchUp(committed_).keep_length, 2);
  EXPECT_THAT(cache_.CatchUp(committed_).append_tokens,
              ElementsAre(12, 13, 14, 15));
}

// More tokens than ours prove nothing about which ones they are.
TEST_F(RecoverFromTest, ALongerCacheIsBelievedNoFurtherThanBefore) {
  RecoverFrom({.reason = MissReason::kLength, .cached_length = 100}, cache_,
              link_);
  EXPECT_EQ(cache_.CatchUp(committed_).keep_length, 4);
}

TEST_F(RecoverFromTest, AnUnknownLifeOrOtherTokensBeginAgainWithEverything) {
  for (const MissReason reason :
       {MissReason::kUnknownIncarnation, MissReason::kPrefix}) {
    cache_.Acknowledged(4, incarnation_);
    RecoverFrom({.reason = reason, .cached_length = 4}, cache_, link_);
    EXPECT_TRUE(cache_.incarnation().is_none());
    EXPECT_EQ(cache_.CatchUp(committed_).keep_length, 0);
    EXPECT_THAT(cache_.CatchUp(committed_).append_tokens,
                ElementsAre(10, 11, 12, 13, 14, 15));
  }
}

TEST_F(RecoverFromTest, AStaleStepNeedsANewStepAndNothingElse) {
  RecoverFrom({.reason = MissReason::kStale, .cached_length = 1}, cache_,
              link_);
  EXPECT_EQ(cache_.incarnation(), incarnation_);
  EXPECT_EQ(cache_.CatchUp(committed_).keep_length, 4);
}

TEST_F(RecoverFromTest, EveryMissIsCountedByItsReason) {
  int expected = 0;
  for (const MissReason reason :
       {MissReason::kUnknownIncarnation, MissReason::kStale,
        MissReason::kLength, MissReason::kPrefix}) {
    RecoverFrom({.reason = reason}, cache_, link_);
    EXPECT_EQ(link_.misses[static_cast<int>(reason)], 1);
    EXPECT_EQ(link_.num_misses(), ++expected);
  }
}

class CheckEchoTest : public ::testing::Test {
 protected:
  const RequestHeader request_ = {.session = SessionId::Random(),
                                  .incarnation = Incarnation::Random(),
                                  .step = 7};
  const ReplyHeader reply_ = {.session = request_.session,
                              .incarnation = request_.incarnation,
                              .step = 7};
};

TEST_F(CheckEchoTest, AnEchoOfSessionLifeAndStepIsTheReply) {
  EXPECT_THAT(CheckEcho(request_, reply_), IsOk());
}

TEST_F(CheckEchoTest, AnOpeningTakesTheLifeThatTheNodeNames) {
  RequestHeader opening = request_;
  opening.incarnation = {};
  EXPECT_THAT(CheckEcho(opening, reply_), IsOk());
}

TEST_F(CheckEchoTest, AnotherSessionLifeOrStepIsAnotherRequestsReply) {
  ReplyHeader session = reply_;
  session.session = SessionId::Random();
  ReplyHeader life = reply_;
  life.incarnation = Incarnation::Random();
  ReplyHeader no_life = reply_;
  no_life.incarnation = {};
  ReplyHeader before = reply_;
  before.step = 6;
  ReplyHeader after = reply_;
  after.step = 8;
  for (const ReplyHeader& reply : {session, life, no_life, before, after}) {
    EXPECT_THAT(CheckEcho(request_, reply),
                StatusIs(absl::StatusCode::kUnavailable));
  }
}

}  // namespace
}  // namespace outrider
