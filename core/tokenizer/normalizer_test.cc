// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

TEST(NormalizerTest, NfcComposesAndReorders) {
  EXPECT_EQ(ToNfc("e\u0301"), "\u00E9");
  EXPECT_EQ(ToNfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(ToNfc("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(ToNfc("\u212B"), "\u00C5");
  EXPECT_EQ(ToNfc("\uFB01 ½"), "\uFB01 ½");  // compatibility is left alone
  EXPECT_EQ(ToNfc("ascii"), "ascii");
  EXPECT_EQ(ToNfc(""), "");
}

// The long run goes through our own ordering, its parts through ICU's.
TEST(NormalizerTest, LongRunsOfMarksAreOrderedLikeShortOnes) {
  std::string run = "a";
  for (int i = 0; i < 100; ++i) run += "\u0301\u0323\u0F73";
  std::string expected = "\u1EA1";  // a with the first dot below
  for (int i = 0; i < 100; ++i) expected += "\u0F71";
  for (int i = 0; i < 100; ++i) expected += "\u0F72";
  for (int i = 0; i < 99; ++i) expected += "\u0323";
  for (int i = 0; i < 100; ++i) expected += "\u0301";
  EXPECT_EQ(ToNfc(run), expected);
  EXPECT_EQ(ToNfc(expected), expected);
}

TEST(NormalizerTest, StepsApplyInOrder) {
  using Kind = NormalizerStep::Kind;
  const std::vector<NormalizerStep> prepend_first = {
      {.kind = Kind::kPrepend, .content = " "},
      {.kind = Kind::kReplace, .pattern = " ", .content = "▁"}};
  EXPECT_EQ(Normalize(prepend_first, "a b"), "▁a▁b");
  const std::vector<NormalizerStep> replace_first = {prepend_first[1],
                                                     prepend_first[0]};
  EXPECT_EQ(Normalize(replace_first, "a b"), " a▁b");
  EXPECT_EQ(Normalize({}, "a b"), "a b");
}

TEST(NormalizerTest, NothingIsPrependedToNothing) {
  EXPECT_EQ(
      Normalize({{.kind = NormalizerStep::Kind::kPrepend, .content = "▁"}}, ""),
      "");
}

}  // namespace
}  // namespace outrider
