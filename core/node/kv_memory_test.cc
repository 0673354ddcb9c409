// SPDX-License-Identifier: Apache-2.0
#include "core/node/kv_memory.h"

#include <vector>

#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::outrider::testing::TableLm;

int64_t BytesOf(const std::string& text) {
  const absl::StatusOr<KvMemory> memory = ParseKvMemory(text);
  EXPECT_THAT(memory, IsOk()) << text;
  return memory.ok() ? memory->bytes : -1;
}

TEST(KvMemoryTest, BytesComeWithAndWithoutAUnit) {
  EXPECT_EQ(BytesOf("1000000"), 1'000'000);
  EXPECT_EQ(BytesOf("64KiB"), 64 << 10);
  EXPECT_EQ(BytesOf("512M"), 512 << 20);
  EXPECT_EQ(BytesOf("4GB"), int64_t{4} << 30);
  EXPECT_EQ(BytesOf("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(BytesOf("1TiB"), int64_t{1} << 40);
}

TEST(KvMemoryTest, AShareIsOfWhatIsAvailable) {
  const absl::StatusOr<KvMemory> memory = ParseKvMemory("80%");
  ASSERT_THAT(memory, IsOk());
  EXPECT_EQ(memory->bytes, 0);
  EXPECT_DOUBLE_EQ(memory->share, 0.8);
}

TEST(KvMemoryTest, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "much", "-1", "0", "0%", "101%", "1XB", "nan",
                           "nan%", "1e30", "G"}) {
    EXPECT_THAT(ParseKvMemory(text),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

class SetUpKvBlocksTest : public ::testing::Test {
 protected:
  TableLm model_{{.table = [](auto) { return std::vector<float>(2); },
                  .vocab_size = 2,
                  .kv_bytes = 100 * TableLm::kBlockBytes}};
};

TEST_F(SetUpKvBlocksTest, AsManyAsTheMemoryHolds) {
  const auto count = SetUpKvBlocks(
      model_, {.bytes = 40 * TableLm::kBlockBytes + 1}, 20, 1 << 20);
  ASSERT_THAT(count, IsOk());
  EXPECT_EQ(*count, 40);
}

TEST_F(SetUpKvBlocksTest, ByDefaultHalfOfTheMachinesMemory) {
  EXPECT_EQ(*SetUpKvBlocks(model_, {}, 20, 1 << 20), 50);
}

TEST_F(SetUpKvBlocksTest, NoMoreThanAllSessionsCouldUse) {
  EXPECT_EQ(*SetUpKvBlocks(model_, {.share = 1}, 20, 100), 7);
}

TEST_F(SetUpKvBlocksTest, TooLittleForARoundIsRefused) {
  EXPECT_THAT(SetUpKvBlocks(model_, {.bytes = TableLm::kBlockBytes}, 20, 100),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SetUpKvBlocksTest, MoreThanThereIsIsRefused) {
  EXPECT_THAT(
      SetUpKvBlocks(model_, {.bytes = 101 * TableLm::kBlockBytes}, 20, 1 << 20),
      StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace outrider
