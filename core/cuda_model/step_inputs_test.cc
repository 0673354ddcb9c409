// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/step_inputs.h"

#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

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
  EXPECT_EQ(step_.shape(), (StepShape{4, 3, 3, 2}));
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
    EXPECT_EQ(tile.first_pair, i);
    EXPECT_EQ(tile.num_beside, 3);
  }
}

// Steps of sessions that are longer than a split.
class PairsOfStepTest : public StepInputsTest {
 protected:
  void Make(int most_pairs) {
    limits_.pairs = most_pairs;
    memory_.assign(StepArrays::Bytes(limits_) / sizeof(int), -1);
    long_step_.emplace(limits_, memory_.data());
    long_arrays_ = StepArrays(limits_, memory_.data());
  }

  void Add(int cached_length, size_t num_tokens, int max_drawn = 0) {
    EXPECT_EQ(long_step_->Add({.blocks = many_,
                               .cached_length = cached_length,
                               .tokens = {all_.data(), num_tokens},
                               .max_drawn = max_drawn},
                              /*first=*/0),
              num_tokens);
  }
  int num_pairs() const { return long_step_->shape().num_pairs; }
  std::vector<std::pair<int, int>> Places() const {
    std::vector<std::pair<int, int>> places;
    for (int i = 0; i < long_step_->shape().num_tiles; ++i) {
      const auto& tile = long_arrays_.tiles[i];
      places.emplace_back(tile.first_pair, tile.num_beside);
    }
    return places;
  }

  StepLimits limits_ = {.rows = 64, .table_entries = 600, .group = 4};
  const std::vector<KvBlockId> many_ = std::vector<KvBlockId>(100, 3);
  const std::vector<TokenId> all_ = std::vector<TokenId>(64, 3);
  std::optional<StepInputs> long_step_;
  StepArrays long_arrays_;
};

TEST_F(PairsOfStepTest, ReachToTheEndOfWhatIsDrawn) {
  Make(/*most_pairs=*/1000);
  Add(511, 1);
  EXPECT_EQ(num_pairs(), 2);
  Add(510, 1, /*max_drawn=*/1);
  EXPECT_EQ(num_pairs(), 4);
  Add(510, 1, /*max_drawn=*/2);
  EXPECT_EQ(num_pairs(), 7);
  Add(0, 1, /*max_drawn=*/700);
  EXPECT_EQ(num_pairs(), 10);
  Add(508, 5);
  EXPECT_EQ(num_pairs(), 16);
  EXPECT_THAT(Places(), ElementsAre(Pair(0, 1), Pair(2, 1), Pair(4, 1),
                                    Pair(7, 1), Pair(10, 2), Pair(11, 2)));
}

// Those of a tile are taken at once, and of a session's tiles as many as fit.
TEST_F(PairsOfStepTest, OfATileAreNeverInTwoLaunches) {
  Make(/*most_pairs=*/7);
  Add(600, 20);  // five tiles of three
  EXPECT_THAT(Places(), ElementsAre(Pair(0, 2), Pair(1, 2), Pair(7, 2),
                                    Pair(8, 2), Pair(14, 1)));
  EXPECT_EQ(num_pairs(), 17);
  Add(0, 1);
  Add(600, 1);
  EXPECT_EQ(num_pairs(), 21);
  Add(0, 13);
  EXPECT_THAT(absl::MakeConstSpan(Places()).subspan(5),
              ElementsAre(Pair(17, 1), Pair(18, 1), Pair(21, 4), Pair(22, 4),
                          Pair(23, 4), Pair(24, 4)));
  Add(600, 4);
  EXPECT_THAT(Places().back(), Pair(25, 1));  // which fills a launch up
  Add(0, 5);
  Add(1500, 4);
  EXPECT_THAT(Places().back(), Pair(35, 1));
  EXPECT_EQ(num_pairs(), 41);
}

TEST_F(StepInputsTest, WhatDoesNotFitIsLeftToTheNextStep) {
  EXPECT_EQ(step_.Add({blocks_, 0, tokens_, 1}, 0), 4);
  EXPECT_EQ(step_.Add({blocks_, 20, tokens_, 3}, 0), 2);  // rows
  EXPECT_EQ(step_.shape(), (StepShape{6, 5, 5, 2}));
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
  const StepShape bucket = {4, 4, 8, 2};
  step_.PadTo(bucket);
  EXPECT_EQ(step_.shape(), bucket);
  EXPECT_THAT(Some(arrays_.blocks, 4), ElementsAre(4, 77, 77, 77));
  EXPECT_THAT(Some(arrays_.positions, 4), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Some(arrays_.logit_rows, 2), ElementsAre(0, 0));
  EXPECT_EQ(arrays_.tiles[0].num_rows, 1);
  EXPECT_EQ(arrays_.tiles[3].num_rows, 0);
  EXPECT_EQ(arrays_.tiles[3].first_pair, 1);
}

}  // namespace
}  // namespace outrider
