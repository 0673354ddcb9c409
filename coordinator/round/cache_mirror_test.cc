// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/cache_mirror.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;

const Incarnation kLife = {.bytes = {1}};

TokenLog Committed(const TokenSeq& tokens) {
  TokenLog log{SessionId()};
  log.Append(tokens);
  return log;
}

TEST(CacheMirrorTest, ANewOneSendsEverything) {
  const CacheDelta delta = CacheMirror().CatchUp(Committed({4, 5, 6}));
  EXPECT_EQ(delta.keep_length, 0);
  EXPECT_THAT(delta.append_tokens, ElementsAre(4, 5, 6));
  EXPECT_TRUE(CacheMirror().incarnation().is_none());
}

TEST(CacheMirrorTest, AlwaysAppendsAtLeastThePendingToken) {
  CacheMirror mirror;
  for (const int length : {2, 3, 10}) {
    mirror.Acknowledged(length, kLife);
    const CacheDelta delta = mirror.CatchUp(Committed({4, 5, 6}));
    EXPECT_EQ(delta.keep_length, 2);
    EXPECT_THAT(delta.append_tokens, ElementsAre(6));
  }
}

TEST(CacheMirrorTest, FullAcceptanceLeavesTwoTokensToAppend) {
  CacheMirror drafter;
  drafter.Acknowledged(1 - 1 + 2, kLife);  // n = 1, K = 2: x_2 has no entry
  drafter.SharesOnly(3);
  const CacheDelta delta = drafter.CatchUp(Committed({4, 5, 6, 7}));
  EXPECT_EQ(delta.keep_length, 2);
  EXPECT_THAT(delta.append_tokens, ElementsAre(6, 7));
}

TEST(CacheMirrorTest, NeitherAVerdictNorAMissMakesItLonger) {
  CacheMirror mirror;
  mirror.Acknowledged(5, kLife);
  mirror.SharesOnly(7);
  EXPECT_EQ(mirror.length(), 5);
  mirror.SharesOnly(3);
  EXPECT_EQ(mirror.length(), 3);
  mirror.ShrankTo(4);
  EXPECT_EQ(mirror.length(), 3);
  mirror.ShrankTo(1);
  EXPECT_EQ(mirror.length(), 1);
  EXPECT_EQ(mirror.incarnation(), kLife);
}

TEST(CacheMirrorTest, ForgettingOpensAgain) {
  CacheMirror mirror;
  mirror.Acknowledged(5, kLife);
  mirror.Forget();
  EXPECT_EQ(mirror.length(), 0);
  EXPECT_TRUE(mirror.incarnation().is_none());
}

}  // namespace
}  // namespace outrider
