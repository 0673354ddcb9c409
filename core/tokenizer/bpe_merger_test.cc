// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/bpe_merger.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

namespace outrider {
namespace {

TokenSeq Merged(const std::vector<BpeMerge>& merges, TokenSeq symbols) {
  BpeMerger(merges).Merge(&symbols);
  return symbols;
}

// The definition: again and again the lowest rank, the leftmost of them.
TokenSeq SlowlyMerged(const std::vector<BpeMerge>& merges, TokenSeq symbols) {
  while (true) {
    std::optional<size_t> best_place;
    size_t best_rank = merges.size();
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left == symbols[i] &&
            merges[rank].right == symbols[i + 1]) {
          best_rank = rank;
          best_place = i;
        }
      }
    }
    if (!best_place) return symbols;
    symbols[*best_place] = merges[best_rank].merged;
    symbols.erase(symbols.begin() + *best_place + 1);
  }
}

TEST(BpeMergerTest, LowerRanksGoFirstWhereverTheyStand) {
  // a b c: (b c) is merged although (a b) comes first in the text.
  EXPECT_EQ(Merged({{1, 2, 4}, {0, 1, 3}}, {0, 1, 2}), (TokenSeq{0, 4}));
}

TEST(BpeMergerTest, OfEqualRanksTheLeftmostGoesFirst) {
  EXPECT_EQ(Merged({{0, 0, 1}}, {0, 0, 0}), (TokenSeq{1, 0}));
  EXPECT_EQ(Merged({{0, 0, 1}, {1, 1, 2}}, {0, 0, 0, 0, 0}), (TokenSeq{2, 0}));
}

TEST(BpeMergerTest, WhatAMergeMakesCanMergeAgainOnBothSides) {
  EXPECT_EQ(Merged({{1, 2, 3}, {0, 3, 4}, {4, 0, 5}}, {0, 1, 2, 0}),
            (TokenSeq{5}));
}

TEST(BpeMergerTest, OfTwoRulesForOnePairTheLaterCounts) {
  EXPECT_EQ(Merged({{0, 1, 5}, {1, 2, 6}, {0, 1, 7}}, {0, 1, 2}),
            (TokenSeq{0, 6}));
}

TEST(BpeMergerTest, NothingToMergeIsLeftAsItIs) {
  EXPECT_EQ(Merged({}, {3, 1, 2}), (TokenSeq{3, 1, 2}));
  EXPECT_EQ(Merged({{0, 1, 2}}, {}), TokenSeq{});
  EXPECT_EQ(Merged({{0, 1, 2}}, {0}), TokenSeq{0});
}

TEST(BpeMergerTest, AgreesWithTheDefinitionOnRandomRules) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    // Every rule makes a token of its own, as training does.
    std::vector<BpeMerge> merges;
    for (TokenId next = 3; next < 12; ++next) {
      merges.push_back({static_cast<TokenId>(random() % next),
                        static_cast<TokenId>(random() % next), next});
    }
    TokenSeq symbols(random() % 30);
    for (TokenId& id : symbols) id = static_cast<TokenId>(random() % 3);
    // Only the later one of two rules for one pair may be there.
    for (size_t i = 0; i < merges.size(); ++i) {
      for (size_t j = i + 1; j < merges.size(); ++j) {
        if (merges[i].left == merges[j].left &&
            merges[i].right == merges[j].right) {
          merges[i].left = 1000 + static_cast<TokenId>(i);
        }
      }
    }
    EXPECT_EQ(Merged(merges, symbols), SlowlyMerged(merges, symbols));
  }
}

}  // namespace
}  // namespace outrider
