// SPDX-License-Identifier: Apache-2.0
#include "core/session/free_block_count.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

class FreeBlockCountTest : public ::testing::Test {
 protected:
  FreeBlockCountTest() {
    EXPECT_TRUE(pool_.Take(4, table_));
    pool_.Share({&table_[0], 1});
    count_.Begin();
  }

  KvBlockPool pool_{6};
  std::vector<KvBlockId> table_;  // the first one has two owners
  FreeBlockCount count_{pool_};
};

TEST_F(FreeBlockCountTest, ABlockIsFreeOnceAllItsOwnersHaveGivenItBack) {
  EXPECT_EQ(count_.num_free(), 2);
  count_.GiveBack(table_);
  EXPECT_EQ(count_.num_free(), 5);
  count_.GiveBack({&table_[0], 1});
  EXPECT_EQ(count_.num_free(), 6);
}

TEST_F(FreeBlockCountTest, WhatSomebodySharesIsNotFreeHoweverItCameToBeSo) {
  count_.Share(table_);
  count_.GiveBack(table_);
  count_.GiveBack({&table_[0], 1});
  EXPECT_EQ(count_.num_free(), 2);
  count_.Begin();
  count_.GiveBack(table_);
  count_.Share(table_);
  EXPECT_EQ(count_.num_free(), 2);
}

TEST_F(FreeBlockCountTest, ACountBeginsWithThePoolAsItIs) {
  count_.GiveBack(table_);
  pool_.GiveBack(table_);
  count_.Begin();
  EXPECT_EQ(count_.num_free(), pool_.num_free());
  EXPECT_EQ(count_.num_looked_at(), 4);
  EXPECT_EQ(pool_.num_free(), 5);
}

}  // namespace
}  // namespace outrider
