// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace outrider {
namespace {

constexpr char kR[] = "\uFFFD";

TEST(Utf8Test, EveryMaximalSubpartBecomesOneReplacement) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"aé字😀", "aé字😀"},
      {"\xFF", kR},
      {"\x80\x80", std::string(kR) + kR},
      {"\xC3", kR},
      {"\xC3(", std::string(kR) + "("},
      {"\xE2\x82", kR},
      {"\xE2\x82z", std::string(kR) + "z"},
      {"\xF0\x9F\x98\xF0\x9F\x98\x80", std::string(kR) + "😀"},
      {"\xC0\xAF", std::string(kR) + kR},           // overlong
      {"\xE0\x80", std::string(kR) + kR},           // overlong
      {"\xF0\x8F\xBF", std::string(kR) + kR + kR},  // overlong
      {"\xED\xA0\x80", std::string(kR) + kR + kR},  // a surrogate
      {"\xF4\x90\x80", std::string(kR) + kR + kR},  // above U+10FFFF
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
       "A",
       std::string(kR) + kR + kR + kR + "A"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(LossyUtf8(bytes), text);
}

TEST(Utf8Test, TheResultDoesNotDependOnHowBytesArrive) {
  const std::string bytes = "a\xC3\xA9\xE2\x82z\xF0\x9F\x98\x80\xF4\x90";
  std::string text;
  Utf8Assembler assembler;
  for (const char c : bytes) {
    const size_t before = text.size();
    assembler.Append(std::string(1, c), &text);
    EXPECT_TRUE(IsValidUtf8(text.substr(before)));
  }
  assembler.Finish(&text);
  EXPECT_EQ(text, LossyUtf8(bytes));
}

TEST(Utf8Test, AFinishedAssemblerIsAsNew) {
  Utf8Assembler assembler;
  std::string text;
  assembler.Append("\xE2\x82", &text);
  assembler.Finish(&text);
  assembler.Finish(&text);
  assembler.Append("\xAC", &text);
  EXPECT_EQ(text, std::string(kR) + kR);
}

TEST(Utf8Test, EveryCodePointSurvivesARoundTrip) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(c, &text);
    ASSERT_TRUE(IsValidUtf8(text)) << static_cast<uint32_t>(c);
    size_t position = 0;
    ASSERT_EQ(NextCodePoint(text, &position), c);
    ASSERT_EQ(position, text.size());
    ASSERT_EQ(PreviousCodePoint(text, text.size()), c);
  }
}

TEST(Utf8Test, AReplacementCharacterInTheTextIsValid) {
  EXPECT_TRUE(IsValidUtf8(kR));
  EXPECT_FALSE(IsValidUtf8("\xEF\xBF"));
}

}  // namespace
}  // namespace outrider
