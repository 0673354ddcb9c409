// SPDX-License-Identifier: Apache-2.0
#include "core/session/token_log.h"

#include <string>

#include "core/session/siphash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;

const SessionId kSession = {.bytes = {1, 2, 3}};

TEST(TokenLogTest, HashesAsTheProtocolSays) {
  TokenLog log(kSession);
  EXPECT_EQ(log.PrefixHash(0), 0u);
  log.Append({7, 258});
  // h' = SipHash(session id, h || token), both little-endian.
  const std::string first("\0\0\0\0\0\0\0\0\x07\0\0\0", 12);
  const uint64_t h1 = SipHash24(kSession.bytes, first);
  EXPECT_EQ(log.PrefixHash(1), h1);
  std::string second;
  for (int i = 0; i < 8; ++i) {
    second.push_back(static_cast<char>(h1 >> (8 * i)));
  }
  second += std::string("\x02\x01\0\0", 4);
  EXPECT_EQ(log.PrefixHash(2), SipHash24(kSession.bytes, second));
}

TEST(TokenLogTest, EqualPrefixesHashEquallyHoweverTheyCameAbout) {
  TokenLog a(kSession);
  a.Append({1, 2, 3, 4});
  TokenLog b(kSession);
  b.Append({1, 2, 9, 9, 9});
  EXPECT_EQ(a.PrefixHash(2), b.PrefixHash(2));
  EXPECT_NE(a.PrefixHash(3), b.PrefixHash(3));
  b.TruncateTo(2);
  b.Append({3});
  b.Append({4});
  EXPECT_EQ(a.PrefixHash(4), b.PrefixHash(4));
  EXPECT_THAT(b.tokens(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(b.From(2), ElementsAre(3, 4));
  EXPECT_TRUE(b.From(4).empty());
}

// The cache of the right length with the wrong tokens: what lengths alone miss.
TEST(TokenLogTest, AnotherTokenAnywhereChangesEveryLaterHash) {
  TokenLog right(kSession);
  right.Append({5, 6, 7, 8});
  TokenLog wrong(kSession);
  wrong.Append({5, 0, 7, 8});
  EXPECT_EQ(right.PrefixHash(1), wrong.PrefixHash(1));
  for (int length = 2; length <= 4; ++length) {
    EXPECT_NE(right.PrefixHash(length), wrong.PrefixHash(length));
  }
}

// Sessions that were preempted, or that only wait, are many.
TEST(TokenLogTest, WhatIsCutToNothingKeepsNoMemory) {
  TokenLog log(kSession);
  log.Append(TokenSeq(1000, 7));
  log.TruncateTo(1);
  EXPECT_NE(log.tokens().data(), nullptr);
  log.TruncateTo(0);
  EXPECT_EQ(log.tokens().data(), nullptr);
  log.Append({7});
  EXPECT_EQ(log.length(), 1);
}

TEST(TokenLogTest, SessionsHashDifferently) {
  TokenLog a(kSession);
  TokenLog b(SessionId{.bytes = {9}});
  a.Append({1});
  b.Append({1});
  EXPECT_NE(a.PrefixHash(1), b.PrefixHash(1));
}

TEST(TokenLogDeathTest, KnowsNoHashBeyondItsEnd) {
  TokenLog log(kSession);
  log.Append({1});
  EXPECT_DEATH(log.PrefixHash(2), "check failed");
  EXPECT_DEATH(log.TruncateTo(2), "check failed");
}

}  // namespace
}  // namespace outrider
