// SPDX-License-Identifier: Apache-2.0
#include "client/token_printer.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "client/scripted_generation_service.h"

namespace outrider::client {
namespace {

using Style = TokenPrinter::Style;

std::string Printed(Style style, const GenerationUpdate& update) {
  std::ostringstream out;
  TokenPrinter(out, style).Print(update);
  return out.str();
}

GenerationUpdate Text(const std::string& text) {
  return {.tokens = {{.text = text, .origin = TokenOrigin::kDraft}}};
}

TEST(TokenPrinterTest, MarksEveryTokenWithTheColourOfItsOrigin) {
  GenerationUpdate update =
      TokensUpdate(0, {TokenOrigin::kDraft, TokenOrigin::kReplacement,
                       TokenOrigin::kBonus, TokenOrigin::kUnknown});
  update.round = {.num_drafted = 3};
  EXPECT_EQ(Printed(Style::kMarked, update),
            "\x1b[32ma\x1b[0m\x1b[1m\x1b[33mb\x1b[0m\x1b[36mc\x1b[0md");
}

TEST(TokenPrinterTest, ARoundWithoutDraftsHasNothingToMark) {
  GenerationUpdate update = TokensUpdate(0, {TokenOrigin::kBonus});
  update.round = RoundStats{};
  EXPECT_EQ(Printed(Style::kMarked, update), "a");
}

TEST(TokenPrinterTest, PlainTextPassesByteByByte) {
  EXPECT_EQ(Printed(Style::kPlain, Text("a\x1b[2J\r\n\xc2\x9b")),
            "a\x1b[2J\r\n\xc2\x9b");
}

TEST(TokenPrinterTest, ATerminalIsShownNoControlCharacters) {
  for (const Style style : {Style::kHarmless, Style::kMarked}) {
    EXPECT_EQ(
        Printed(style, Text("\ta\x1b[2J\r\n\xc2\x9b\xc3\xa9\x7f")),
        "\ta\xef\xbf\xbd[2J\xef\xbf\xbd\n\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
  }
}

TEST(TokenPrinterTest, ThePromptIsDimmedWhereTextIsMarkedAndElseLeftOut) {
  std::ostringstream marked;
  TokenPrinter(marked, Style::kMarked).PrintPrompt("prompt");
  EXPECT_EQ(marked.str(), "\x1b[2mprompt\x1b[0m");
  for (const Style style : {Style::kPlain, Style::kHarmless}) {
    std::ostringstream unmarked;
    TokenPrinter(unmarked, style).PrintPrompt("prompt");
    EXPECT_EQ(unmarked.str(), "");
  }
}

TEST(TokenPrinterTest, OfALongPromptTheEndIsShownInWholeCharacters) {
  std::string prompt(3001, 'x');
  prompt += "\xc3\xa9";
  for (int i = 0; i < 1999; ++i) prompt += 'y';  // cuts the character in two
  std::ostringstream out;
  TokenPrinter(out, Style::kMarked).PrintPrompt(prompt);
  EXPECT_EQ(out.str(),
            "\x1b[2m[...] \x1b[0m\x1b[2m" + std::string(1999, 'y') + "\x1b[0m");
}

TEST(TokenPrinterTest, KnowsWhetherALineWasEnded) {
  std::ostringstream out;
  TokenPrinter printer(out, Style::kPlain);
  EXPECT_TRUE(printer.at_line_start());
  printer.Print(Text("a"));
  EXPECT_FALSE(printer.at_line_start());
  printer.Print(Text("b\n"));
  EXPECT_TRUE(printer.at_line_start());
  printer.Print(Text(""));
  EXPECT_TRUE(printer.at_line_start());
}

}  // namespace
}  // namespace outrider::client
