// SPDX-License-Identifier: Apache-2.0
// Which block holds which text, and when it is given to another one.
#include "core/session/prefix_cache.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// So many blocks of one token each.
TokenSeq Text(const std::vector<TokenId>& tokens) {
  TokenSeq text;
  for (const TokenId token : tokens) {
    text.insert(text.end(), kKvBlockLength, token);
  }
  return text;
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  // A text that was cached, and whose session has ended.
  std::vector<KvBlockId> Leave(const TokenSeq& text,
                               const std::string& salt = "s") {
    std::vector<KvBlockId> table;
    EXPECT_TRUE(cache_.Take(NumKvBlocks(static_cast<int>(text.size())), table));
    cache_.Enter(salt, text, table);
    pool_.GiveBack(table);
    return table;
  }
  // What is found, and used once more.
  std::vector<KvBlockId> Found(const TokenSeq& text,
                               const std::string& salt = "s") {
    const std::vector<KvBlockId> table = cache_.Find(salt, text);
    pool_.Share(table);
    pool_.GiveBack(table);
    return table;
  }

  KvBlockPool pool_{6};
  PrefixCache cache_{pool_};
};

TEST_F(PrefixCacheTest, FindsTheLongestKnownBeginning) {
  const auto table = Leave(Text({1, 2, 3}));
  EXPECT_EQ(Found(Text({1, 2, 3, 4})), table);
  EXPECT_THAT(Found(Text({1, 2, 9})), ElementsAre(table[0], table[1]));
  EXPECT_THAT(Found(Text({2, 3})), IsEmpty());
  // A block that is not full says nothing.
  TokenSeq text = Text({1, 2});
  text.pop_back();
  EXPECT_THAT(Found(text), ElementsAre(table[0]));
}

TEST_F(PrefixCacheTest, TheSameTokensAfterAnotherTextAreAnotherText) {
  Leave(Text({1, 7}));
  EXPECT_THAT(Found(Text({2, 7})), IsEmpty());
  Leave(Text({2}));
  EXPECT_THAT(Found(Text({2, 7})), SizeIs(1));
}

TEST_F(PrefixCacheTest, EachSaltHasItsOwnTexts) {
  const auto table = Leave(Text({1, 2}), "a");
  EXPECT_THAT(Found(Text({1, 2}), "b"), IsEmpty());
  EXPECT_THAT(Found(Text({1, 2}), ""), IsEmpty());
  EXPECT_EQ(Found(Text({1, 2}), "a"), table);
}

TEST_F(PrefixCacheTest, KeptBlocksAreFreeAndTakenLastTheLongestUnusedFirst) {
  const auto old = Leave(Text({1, 2}));
  const auto young = Leave(Text({3, 4}));
  EXPECT_EQ(pool_.num_free(), 6);
  EXPECT_EQ(pool_.num_free_kept(), 4);
  EXPECT_THAT(Found(Text({1, 2})), SizeIs(2));  // used again
  std::vector<KvBlockId> table;
  ASSERT_TRUE(cache_.Take(3, table));
  // Two that held nothing, then the end of the text unused for longest.
  EXPECT_EQ(table[2], young[1]);
  EXPECT_THAT(Found(Text({3, 4})), ElementsAre(young[0]));
  EXPECT_EQ(Found(Text({1, 2})), old);
  ASSERT_TRUE(cache_.Take(3, table));
  EXPECT_THAT(Found(Text({1})), IsEmpty());
  EXPECT_FALSE(cache_.Take(1, table));
}

TEST_F(PrefixCacheTest, ThoseWhoCachedTheSameKeepOneCopy) {
  std::vector<KvBlockId> first;
  std::vector<KvBlockId> second;
  ASSERT_TRUE(cache_.Take(2, first));
  ASSERT_TRUE(cache_.Take(2, second));
  cache_.Enter("s", Text({1, 2}), first);
  cache_.Enter("s", Text({1, 3}), second);
  EXPECT_EQ(second[0], first[0]);
  EXPECT_NE(second[1], first[1]);
  EXPECT_EQ(pool_.num_shared(), 1);
  EXPECT_EQ(pool_.num_free(), 3);
}

TEST_F(PrefixCacheTest, WhatIsForgottenIsNotFoundAndFreeAsAnyOther) {
  const auto table = Leave(Text({1, 2}));
  cache_.Forget({table[0]});
  EXPECT_THAT(Found(Text({1, 2})), IsEmpty());
  EXPECT_EQ(pool_.num_free(), 6);
  EXPECT_EQ(pool_.num_free_kept(), 1);
  // What stood after it is not found after its successor.
  Leave(Text({1}));
  EXPECT_THAT(Found(Text({1, 2})), SizeIs(1));
}

TEST(SharedSaltTest, SaysAmongWhomASessionShares) {
  EXPECT_EQ(SharedSalt(PrefixSharing::kOff, "a"), std::nullopt);
  EXPECT_EQ(SharedSalt(PrefixSharing::kSalted, ""), std::nullopt);
  EXPECT_EQ(SharedSalt(PrefixSharing::kSalted, "a"), "a");
  EXPECT_EQ(SharedSalt(PrefixSharing::kAll, ""), "");
  EXPECT_EQ(SharedSalt(PrefixSharing::kAll, "a"), "a");
}

}  // namespace
}  // namespace outrider
