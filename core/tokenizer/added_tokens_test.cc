// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Tokens as "#id", text as it is.
std::vector<std::string> Split(const std::vector<AddedToken>& tokens,
                               absl::string_view text) {
  std::vector<std::string> patterns;
  for (const AddedToken& token : tokens) patterns.push_back(token.content);
  std::vector<std::string> shown;
  for (const TextSegment& segment :
       AddedTokenFinder(tokens, patterns).Split(text)) {
    shown.push_back(segment.token ? absl::StrCat("#", *segment.token)
                                  : std::string(segment.text));
  }
  return shown;
}

TEST(AddedTokensTest, TokensAreTakenOutOfTheText) {
  EXPECT_THAT(Split({{.id = 7, .content = "<s>"}}, "a<s><s> b"),
              ElementsAre("a", "#7", "#7", " b"));
  EXPECT_THAT(Split({{.id = 7, .content = "<s>"}}, "a<s"), ElementsAre("a<s"));
  EXPECT_THAT(Split({}, "a"), ElementsAre("a"));
  EXPECT_THAT(Split({{.id = 7, .content = "<s>"}}, ""), IsEmpty());
}

TEST(AddedTokensTest, TheLeftmostAndThenTheLongestWins) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "ab"},
                                          {.id = 2, .content = "abcd"},
                                          {.id = 3, .content = "bcde"}};
  EXPECT_THAT(Split(tokens, "abcde"), ElementsAre("#2", "e"));
  EXPECT_THAT(Split(tokens, "abce"), ElementsAre("#1", "ce"));
  EXPECT_THAT(Split(tokens, "xbcde"), ElementsAre("x", "#3"));
}

TEST(AddedTokensTest, ASingleWordTouchesNoWordCharacter) {
  const std::vector<AddedToken> tokens = {
      {.id = 1, .content = "cat", .single_word = true}};
  EXPECT_THAT(Split(tokens, "cat"), ElementsAre("#1"));
  EXPECT_THAT(Split(tokens, "(cat)"), ElementsAre("(", "#1", ")"));
  EXPECT_THAT(Split(tokens, "cats"), ElementsAre("cats"));
  EXPECT_THAT(Split(tokens, "écat"), ElementsAre("écat"));
  EXPECT_THAT(Split(tokens, "_cat cat\u0301"), ElementsAre("_cat cat\u0301"));
}

TEST(AddedTokensTest, StrippingTakesWhiteSpaceAlong) {
  EXPECT_THAT(
      Split({{.id = 1, .content = "<m>", .lstrip = true}}, "a \u3000<m> b"),
      ElementsAre("a", "#1", " b"));
  EXPECT_THAT(
      Split({{.id = 1, .content = "<m>", .rstrip = true}}, "a <m> \n\tb"),
      ElementsAre("a ", "#1", "b"));
  EXPECT_THAT(
      Split({{.id = 1, .content = "<m>", .lstrip = true, .rstrip = true}},
            " <m> <m> "),
      ElementsAre("#1", "#1"));
}

}  // namespace
}  // namespace outrider
