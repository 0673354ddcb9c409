// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/step_inputs.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;

constexpr StepLimits kLimits = {
    .rows = 6, .table_entries = 5, .group = 9, .spare_block = 77};

class StepInputsTest : public ::testing::Test {
 protected:
  StepInputsTest()
      : memory_(StepArrays::Bytes(kLimits) / sizeof(int), -1),
        step_(kLimits, memory_.data()),
        arrays_(kLimits, memory_.data()) {}

  static std::vector<int> Some(const int* begin, int count) {
    return {begin, begin + count};
  }

  std::vector<int> memory_;
  StepInputs step_;
  const StepArrays arrays_;
  const std::vector<TokenId> tokens_ = {10, 11, 12, 13};
  const std::vector<KvBlockId> blocks_ = {4, 2, 9, 8};
};

TEST_F(StepInputsTest, ARowKnowsItsPlaceAndItsBlock) {
  EXPECT_EQ(step_.Add({blocks_, 30, tokens_, 2}, 0), 4);
  EXPECT_EQ(step_.shape(), (StepShape{4, 3, 34, 2}));
  EXPECT_THAT(Some(arrays_.tokens, 4), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(Some(arrays_.positions, 4), ElementsAre(30, 31, 32, 33));
  EXPECT_THAT(Some(arrays_.blocks, 4), ElementsAre(2, 2, 9, 9));
  EXPECT_THAT(Some(arrays_.logit_rows, 2), ElementsAre(2, 3));
  EXPECT_THAT(Some(arrays_.tables, 3), ElementsAre(4, 2, 9));
  EXPECT_EQ(step_.bytes(), StepArrays::Bytes(kLimits) - 2 * sizeof(int));
  for (int i = 0; i < 3; ++i) {
    const kernels::cuda::AttentionTile& tile = arrays_.tiles[i];
    EXPECT_EQ(tile.first_query, 16 * i);
    EXPECT_EQ(tile.num_rows, 4);
    EXPECT_EQ(tile.first_position, 30);
  }
}

TEST_F(StepInputsTest, WhatDoesNotFitIsLeftToTheNextStep) {
  EXPECT_EQ(step_.Add({blocks_, 0, tokens_, 1}, 0), 4);
  EXPECT_EQ(step_.Add({blocks_, 20, tokens_, 3}, 0), 2);  // rows
  EXPECT_EQ(step_.shape(), (StepShape{6, 5, 22, 2}));
  EXPECT_THAT(Some(arrays_.logit_rows, 2), ElementsAre(3, 5));
  EXPECT_EQ(arrays_.tiles[3].first_table_entry, 1);
  EXPECT_EQ(arrays_.tiles[3].first_row, 4);
  EXPECT_EQ(step_.Add({blocks_, 0, tokens_, 1}, 0), 0);
  step_.Clear();
  EXPECT_TRUE(step_.empty());
  EXPECT_EQ(step_.Add({blocks_, 20, tokens_, 3}, 2), 2);
  EXPECT_THAT(Some(arrays_.positions, 2), ElementsAre(22, 23));
  EXPECT_EQ(step_.shape().num_logit_rows, 2);
  // Four blocks more would be one too many.
  EXPECT_EQ(step_.Add({blocks_, 60, tokens_, 3}, 0), 0);
}

TEST_F(StepInputsTest, PaddingIsRowsOfTheSpareBlockAndTilesOfNobody) {
  EXPECT_EQ(step_.Add({blocks_, 0, {tokens_.data(), 1}, 1}, 0), 1);
  const StepShape bucket = {4, 4, 512, 2};
  step_.PadTo(bucket);
  EXPECT_EQ(step_.shape(), bucket);
  EXPECT_THAT(Some(arrays_.blocks, 4), ElementsAre(4, 77, 77, 77));
  EXPECT_THAT(Some(arrays_.positions, 4), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Some(arrays_.logit_rows, 2), ElementsAre(0, 0));
  EXPECT_EQ(arrays_.tiles[0].num_rows, 1);
  EXPECT_EQ(arrays_.tiles[3].num_rows, 0);
}

}  // namespace
}  // namespace outrider
