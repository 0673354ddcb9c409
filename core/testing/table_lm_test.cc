// SPDX-License-Identifier: Apache-2.0
#include "core/testing/table_lm.h"

#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

using ::testing::ElementsAre;

// The row after a context: its length, then its first token.
std::vector<float> Describe(absl::Span<const TokenId> context) {
  return {static_cast<float>(context.size()),
          static_cast<float>(context.front())};
}

class TableLmTest : public ::testing::Test {
 protected:
  TableLmTest() { EXPECT_TRUE(model_.AllocateKvBlocks(8).ok()); }

  absl::StatusOr<LogitRows> Run(absl::Span<const KvBlockId> table,
                                int cached_length, const TokenSeq& tokens,
                                int num_rows = 1) {
    return model_.Extend({{.blocks = table,
                           .cached_length = cached_length,
                           .tokens = tokens,
                           .num_rows = num_rows}})[0];
  }

  TableLm model_{{.table = Describe, .vocab_size = 2, .context_length = 40}};
};

TEST_F(TableLmTest, GivesTheLastRowsOfTheCutAndAppendedContext) {
  ASSERT_THAT(Run({3}, 0, {0, 1, 0}), IsOk());
  const auto rows = Run({3}, 2, {1, 1}, 2);
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(rows->Row(0), ElementsAre(3, 0));
  EXPECT_THAT(rows->Row(1), ElementsAre(4, 0));
  EXPECT_THAT(model_.Context({3}, 4), ElementsAre(0, 1, 1, 1));
}

TEST_F(TableLmTest, AContextIsWhatTheTableSaysInItsOrder) {
  const TokenSeq zeros(kKvBlockLength, 0);
  const TokenSeq ones(kKvBlockLength, 1);
  ASSERT_THAT(Run({5}, 0, zeros), IsOk());
  ASSERT_THAT(Run({2}, 0, ones), IsOk());
  const auto rows = Run({2, 5, 7}, 2 * kKvBlockLength, {0});
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(rows->Row(0), ElementsAre(33, 1));
}

TEST_F(TableLmTest, WhatNobodyWroteOrWasGivenBackIsPoison) {
  ASSERT_THAT(Run({4}, 0, {1}), IsOk());
  EXPECT_EQ(model_.num_poison_reads(), 0);
  ASSERT_THAT(Run({4}, 2, {1}), IsOk());
  EXPECT_EQ(model_.num_poison_reads(), 1);
  model_.PoisonKvBlock(4);
  const auto rows = Run({4}, 1, {1});
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(rows->Row(0), ElementsAre(2, TableLm::kPoison));
  EXPECT_EQ(model_.num_poison_reads(), 2);
}

TEST_F(TableLmTest, AWriteToASharedBlockSpoilsTheOthersContext) {
  ASSERT_THAT(Run({4}, 0, {0, 0}), IsOk());
  const TokenSeq mine = {1};
  const TokenSeq others = {0};
  const auto results = model_.Extend(
      {{.blocks = {4}, .cached_length = 2, .tokens = mine, .num_rows = 1},
       {.blocks = {4}, .cached_length = 0, .tokens = others}});
  ASSERT_THAT(results[0], IsOk());
  const TokenSeq wrong = {1};
  const auto spoiled = model_.Extend(
      {{.blocks = {4}, .cached_length = 2, .tokens = mine, .num_rows = 1},
       {.blocks = {4}, .cached_length = 0, .tokens = wrong}});
  ASSERT_THAT(spoiled[0], IsOk());
  EXPECT_THAT(spoiled[0]->Row(0), ElementsAre(3, 1));
}

TEST_F(TableLmTest, OneThatFailsLeavesTheOthersAndItsBlocks) {
  const TokenSeq tokens = {0, 1};
  const TokenSeq unknown = {1, 2};
  ASSERT_THAT(Run({1}, 0, tokens), IsOk());
  const auto results = model_.Extend({
      {.blocks = {1}, .tokens = unknown},
      {.blocks = {1}, .cached_length = 15, .tokens = tokens},
      {.blocks = {2}, .tokens = tokens, .num_rows = 1},
  });
  EXPECT_THAT(results[0], StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(results[1], StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(results[2], IsOk());
  EXPECT_THAT(model_.Context({1}, 2), ElementsAre(0, 1));
}

TEST_F(TableLmTest, AWrongCutIsAWrongContext) {
  TableLm model(
      {.table = Describe,
       .vocab_size = 2,
       .cut = [](const TableLm::CutView& v) { return v.num_entries; }});
  ASSERT_THAT(model.AllocateKvBlocks(1), IsOk());
  const TokenSeq tokens = {0, 1, 0};
  for (const int cached_length : {0, 1}) {
    const auto rows = model.Extend({{.blocks = {0},
                                     .cached_length = cached_length,
                                     .tokens = tokens,
                                     .num_rows = 1}})[0];
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(rows->Row(0)[0], cached_length == 0 ? 3 : 6);
  }
}

}  // namespace
}  // namespace outrider::testing
