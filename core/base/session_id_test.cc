// SPDX-License-Identifier: Apache-2.0
#include "core/base/session_id.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(SessionIdTest, RandomOnesDiffer) {
  std::set<Id128> ids;
  std::set<uint64_t> seeds;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(ids.insert(Id128::Random()).second);
    EXPECT_TRUE(seeds.insert(RandomSeed()).second);
  }
}

TEST(SessionIdTest, GoesThroughBytesUnchanged) {
  const Id128 id = Id128::Random();
  EXPECT_EQ(id.ToBytes().size(), 16u);
  EXPECT_EQ(Id128::FromBytes(id.ToBytes()), id);
}

TEST(SessionIdTest, NoneIsEmptyAndWhateverHasNot16Bytes) {
  EXPECT_EQ(Id128().ToBytes(), "");
  EXPECT_TRUE(Id128::FromBytes("").is_none());
  EXPECT_TRUE(Id128::FromBytes(std::string(15, 'x')).is_none());
  EXPECT_TRUE(Id128::FromBytes(std::string(17, 'x')).is_none());
  EXPECT_FALSE(Id128::FromBytes(std::string(16, 'x')).is_none());
}

TEST(SessionIdTest, LogsShowTheFirstEightDigits) {
  const Id128 id = {.bytes = {0x01, 0xab, 0xcd, 0xef, 0xff}};
  EXPECT_EQ(id.ShortHex(), "01abcdef");
}

}  // namespace
}  // namespace outrider
