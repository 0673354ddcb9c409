// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/digits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Stretches(Digits digits, absl::string_view text) {
  std::vector<std::string> stretches;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = StretchEnd(digits, text, begin);
    stretches.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return stretches;
}

TEST(DigitsTest, StandAloneOrInRunsOrNotAtAll) {
  constexpr char kText[] = " a 12  3b";
  EXPECT_THAT(Stretches(Digits::kWithText, kText), ElementsAre(kText));
  EXPECT_THAT(Stretches(Digits::kRunsAlone, kText),
              ElementsAre(" a ", "12", "  ", "3", "b"));
  EXPECT_THAT(Stretches(Digits::kEachAlone, kText),
              ElementsAre(" a ", "1", "2", "  ", "3", "b"));
}

// The count is that of the reference, tokenizers 0.23.3, and is of Unicode 17.
TEST(DigitsTest, EveryNumericCharacterOfTheReferenceIsOne) {
  int num_numeric = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "a";
    AppendUtf8(c, &text);
    num_numeric += StretchEnd(Digits::kRunsAlone, text, 0) == 1;
  }
  EXPECT_EQ(num_numeric, 1924);
}

}  // namespace
}  // namespace outrider
