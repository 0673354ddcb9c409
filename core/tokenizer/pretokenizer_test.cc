// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Pieces(const PretokenizerSpec& spec,
                                absl::string_view text, bool is_first = true) {
  std::vector<std::string> pieces;
  ForEachPiece(spec, text, is_first,
               [&](absl::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

PretokenizerSpec Metaspace(Prepend prepend, bool cut) {
  return {.kind = PretokenizerSpec::Kind::kMetaspace,
          .prepend = prepend,
          .replacement = "▁",
          .cut_at_replacement = cut};
}

TEST(PretokenizerTest, WithoutAnyTheTextIsOnePiece) {
  EXPECT_THAT(Pieces({}, "a b\nc"), ElementsAre("a b\nc"));
  EXPECT_THAT(Pieces({}, ""), IsEmpty());
}

TEST(PretokenizerTest, MetaspaceCutsBeforeEveryReplacement) {
  EXPECT_THAT(Pieces(Metaspace(Prepend::kAlways, true), "a  b"),
              ElementsAre("▁a", "▁", "▁b"));
  EXPECT_THAT(Pieces(Metaspace(Prepend::kNever, true), "a b▁c"),
              ElementsAre("a", "▁b", "▁c"));
}

TEST(PretokenizerTest, APrefixIsAddedOnlyWhereNoneStands) {
  EXPECT_THAT(Pieces(Metaspace(Prepend::kAlways, false), " a b"),
              ElementsAre("▁a▁b"));
  EXPECT_THAT(Pieces(Metaspace(Prepend::kAlways, false), "▁a"),
              ElementsAre("▁a"));
  const PretokenizerSpec byte_level = {
      .kind = PretokenizerSpec::Kind::kByteLevel,
      .pattern = SplitPattern::kGpt2,
      .prepend = Prepend::kAlways};
  EXPECT_THAT(Pieces(byte_level, "a b"), ElementsAre(" a", " b"));
  EXPECT_THAT(Pieces(byte_level, " a"), ElementsAre(" a"));
  EXPECT_THAT(Pieces(byte_level, "\ta"), ElementsAre(" ", "\t", "a"));
}

TEST(PretokenizerTest, FirstMeansTheStartOfTheWholeText) {
  EXPECT_THAT(Pieces(Metaspace(Prepend::kFirst, false), "a", true),
              ElementsAre("▁a"));
  EXPECT_THAT(Pieces(Metaspace(Prepend::kFirst, false), "a", false),
              ElementsAre("a"));
}

PretokenizerSpec Gpt2After(Digits digits) {
  return {.kind = PretokenizerSpec::Kind::kByteLevel,
          .pattern = SplitPattern::kGpt2,
          .digits = digits};
}

TEST(PretokenizerTest, ToAPatternADigitEndsTheTextBeforeIt) {
  const PretokenizerSpec spec = Gpt2After(Digits::kEachAlone);
  EXPECT_THAT(Pieces(spec, "a  12 b"), ElementsAre("a", "  ", "1", "2", " b"));
  EXPECT_THAT(Pieces(spec, "a \n1\n\n b"),
              ElementsAre("a", " \n", "1", "\n\n", " b"));
  EXPECT_THAT(Pieces(spec, "it's1's"), ElementsAre("it", "'s", "1", "'s"));
  EXPECT_THAT(Pieces(spec, "x²½Ⅷ١y"),
              ElementsAre("x", "²", "½", "Ⅷ", "١", "y"));
}

TEST(PretokenizerTest, RunsOfDigitsMayStayWhole) {
  const PretokenizerSpec spec = Gpt2After(Digits::kRunsAlone);
  EXPECT_THAT(Pieces(spec, "a  12½ b3"),
              ElementsAre("a", "  ", "12½", " b", "3"));
}

}  // namespace
}  // namespace outrider
