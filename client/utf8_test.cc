// SPDX-License-Identifier: Apache-2.0
#include "client/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider::client {
namespace {

TEST(Utf8Test, CharactersOfEveryLengthAreValid) {
  for (const std::string text :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
        "a\xc3\xa9z"}) {
    EXPECT_EQ(FindInvalidUtf8(text), std::nullopt) << text;
  }
  EXPECT_EQ(FindInvalidUtf8(absl::string_view("\0a", 2)), std::nullopt);
}

TEST(Utf8Test, TheFirstByteThatBeginsNoCharacterIsFound) {
  for (const std::string wrong : {
           "\x80", "\xbf", "\xff", "\xfe", "\xc3", "\xc3(",  // alone
           "\xe2\x82", "\xf0\x9f\x98",                       // cut off
           "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",   // overlong
           "\xed\xa0\x80", "\xed\xbf\xbf",                   // surrogates
           "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"        // too large
       }) {
    EXPECT_EQ(FindInvalidUtf8(wrong), 0u);
    EXPECT_EQ(FindInvalidUtf8("a\xc3\xa9" + wrong + "b"), 3u);
  }
}

}  // namespace
}  // namespace outrider::client
