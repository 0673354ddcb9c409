// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/bpe_model.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TokenSeq Encoded(const BpeModel& model, absl::string_view piece) {
  TokenSeq ids;
  model.Encode(piece, &ids);
  return ids;
}

BpeSpec SmallSpec() {
  return {.tokens = {"<unk>", "a", "b", "ab", "<0xC3>", "<0xA9>", "é", "abab"},
          .merges = {{1, 2, 3}}};
}

TEST(BpeModelTest, AWholePieceIsATokenOnlyIfMergesAreIgnored) {
  BpeSpec spec = SmallSpec();
  EXPECT_EQ(Encoded(BpeModel(spec, BpeModel::Symbols::kCharacters), "abab"),
            (TokenSeq{3, 3}));
  spec.ignore_merges = true;
  EXPECT_EQ(Encoded(BpeModel(spec, BpeModel::Symbols::kCharacters), "abab"),
            TokenSeq{7});
}

TEST(BpeModelTest, AnUnknownCharacterFallsBackToItsBytes) {
  BpeSpec spec = SmallSpec();
  spec.tokens[6].reset();
  spec.unknown = 0;
  spec.byte_fallback = true;
  const BpeModel model(spec, BpeModel::Symbols::kCharacters);
  EXPECT_EQ(Encoded(model, "aé"), (TokenSeq{1, 4, 5}));
  // One byte of "ê" has no token: then none of them is used.
  EXPECT_EQ(Encoded(model, "aê"), (TokenSeq{1, 0}));
}

TEST(BpeModelTest, NeighbouringUnknownsAreFusedOnDemand) {
  BpeSpec spec = SmallSpec();
  spec.unknown = 0;
  EXPECT_EQ(Encoded(BpeModel(spec, BpeModel::Symbols::kCharacters), "xyaz"),
            (TokenSeq{0, 0, 1, 0}));
  spec.fuse_unknown = true;
  EXPECT_EQ(Encoded(BpeModel(spec, BpeModel::Symbols::kCharacters), "xyaz"),
            (TokenSeq{0, 1, 0}));
}

TEST(BpeModelTest, WithoutAnUnknownTokenUnknownsAreLeftOut) {
  EXPECT_EQ(
      Encoded(BpeModel(SmallSpec(), BpeModel::Symbols::kCharacters), "xay"),
      TokenSeq{1});
}

TEST(BpeModelTest, InByteLevelVocabulariesTokensSpellBytes) {
  // "é" spells the byte E9, which no valid text contains alone; "Ã" and "©" are
  // the bytes of é.
  const BpeModel model(
      {.tokens = {"é", "Ã", "©", "Ã©", "Ġ"}, .merges = {{1, 2, 3}}},
      BpeModel::Symbols::kBytes);
  EXPECT_EQ(Encoded(model, "é é"), (TokenSeq{3, 4, 3}));
}

}  // namespace
}  // namespace outrider
