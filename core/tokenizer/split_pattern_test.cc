// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/split_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Pieces(SplitPattern pattern, absl::string_view text) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = PieceEnd(pattern, text, begin);
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

TEST(SplitPatternTest, TheLastBlankOfARunBelongsToTheWordAfterIt) {
  for (const SplitPattern pattern :
       {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    EXPECT_THAT(Pieces(pattern, "a   b"), ElementsAre("a", "  ", " b"));
    EXPECT_THAT(Pieces(pattern, "a   "), ElementsAre("a", "   "));
  }
}

TEST(SplitPatternTest, OnlyGpt2LeavesATabAlone) {
  EXPECT_THAT(Pieces(SplitPattern::kGpt2, "\tfoo"), ElementsAre("\t", "foo"));
  EXPECT_THAT(Pieces(SplitPattern::kLlama3, "\tfoo"), ElementsAre("\tfoo"));
}

TEST(SplitPatternTest, NumbersAreCutByTheirPattern) {
  EXPECT_THAT(Pieces(SplitPattern::kGpt2, " 1234"), ElementsAre(" 1234"));
  EXPECT_THAT(Pieces(SplitPattern::kLlama3, " 1234"),
              ElementsAre(" ", "123", "4"));
  EXPECT_THAT(Pieces(SplitPattern::kQwen2, "12½"), ElementsAre("1", "2", "½"));
}

TEST(SplitPatternTest, ContractionsIgnoreCaseInLlama3Only) {
  EXPECT_THAT(Pieces(SplitPattern::kGpt2, "I'm"), ElementsAre("I", "'m"));
  EXPECT_THAT(Pieces(SplitPattern::kGpt2, "I'M"), ElementsAre("I", "'", "M"));
  EXPECT_THAT(Pieces(SplitPattern::kLlama3, "WE'LLx"),
              ElementsAre("WE", "'LL", "x"));
  EXPECT_THAT(Pieces(SplitPattern::kLlama3, "'ſa"), ElementsAre("'ſ", "a"));
  EXPECT_THAT(Pieces(SplitPattern::kLlama3, "'xa"), ElementsAre("'xa"));
}

TEST(SplitPatternTest, NewlinesStayWithWhatStandsBeforeThem) {
  EXPECT_THAT(Pieces(SplitPattern::kLlama3, "a;\r\n\n  b"),
              ElementsAre("a", ";\r\n\n", " ", " b"));
  EXPECT_THAT(Pieces(SplitPattern::kLlama3, "a \n \n  b"),
              ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(Pieces(SplitPattern::kGpt2, "a;\n\nb"),
              ElementsAre("a", ";", "\n", "\n", "b"));
}

TEST(SplitPatternTest, MarksAreNeitherLettersNorBlanks) {
  EXPECT_THAT(Pieces(SplitPattern::kGpt2, "e\u0301a"),
              ElementsAre("e", "\u0301", "a"));
  EXPECT_THAT(Pieces(SplitPattern::kLlama3, "e\u0301a"),
              ElementsAre("e", "\u0301a"));
}

TEST(SplitPatternTest, UnicodeBlanksAreBlanksButZeroWidthOnesAreNot) {
  EXPECT_THAT(Pieces(SplitPattern::kGpt2, "a\u00A0\u3000b"),
              ElementsAre("a", "\u00A0", "\u3000", "b"));
  EXPECT_THAT(Pieces(SplitPattern::kGpt2, "a\u200Bb"),
              ElementsAre("a", "\u200B", "b"));
}

TEST(SplitPatternTest, OnlyExactlyKnownExpressionsAreKnown) {
  EXPECT_EQ(KnownSplitPattern("\\s+"), std::nullopt);
  EXPECT_EQ(KnownSplitPattern(""), std::nullopt);
  EXPECT_EQ(KnownSplitPattern("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
                              "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"),
            SplitPattern::kGpt2);
  EXPECT_EQ(KnownSplitPattern("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
                              "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+ "),
            std::nullopt);
}

}  // namespace
}  // namespace outrider
