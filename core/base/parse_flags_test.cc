// SPDX-License-Identifier: Apache-2.0
#include "core/base/parse_flags.h"

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

// What a program with commands says of such words, and leaves with.
struct Told {
  std::optional<int> exit_status;
  std::string error;
};

Told TellOf(std::initializer_list<const char*> words) {
  CLI::App app("It has commands.", "program");
  app.require_subcommand(1);
  app.add_subcommand("go", "It goes.");
  std::string text;
  app.add_subcommand("say", "It says.")->add_option("text", text, "what");
  CLI::App* const bench = app.add_subcommand("bench", "It measures.");
  bench->require_subcommand(1);
  bench->add_subcommand("sweep", "It measures all.");
  std::vector<std::string> arguments = {"program"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : arguments) pointers.push_back(word.data());
  ::testing::internal::CaptureStderr();
  Told told;
  told.exit_status =
      ParseFlags(app, static_cast<int>(pointers.size()), pointers.data());
  told.error = ::testing::internal::GetCapturedStderr();
  return told;
}

void ExpectRefused(std::initializer_list<const char*> words,
                   const std::string& error) {
  const Told told = TellOf(words);
  EXPECT_EQ(told.exit_status, kExitBadFlags);
  EXPECT_EQ(told.error, error);
}

TEST(ParseFlagsTest, WhatIsRightGoesOn) {
  EXPECT_EQ(TellOf({"go"}).exit_status, std::nullopt);
  EXPECT_EQ(TellOf({"bench", "sweep"}).exit_status, std::nullopt);
}

TEST(ParseFlagsTest, ACommandThatIsMissingOrNoneIsNamedWithThoseThatThereAre) {
  ExpectRefused(
      {}, "program: needs a command: go, say, bench (see program --help)\n");
  ExpectRefused({"gone"},
                "program: no command \"gone\"; there are go, say, bench (see "
                "program --help)\n");
  ExpectRefused(
      {"bench", "swep"},
      "program: no command \"swep\"; there are sweep (see program bench "
      "--help)\n");
}

TEST(ParseFlagsTest, AFlagThatIsNoneIsNamed) {
  ExpectRefused({"go", "--far"},
                "program: The following argument was not expected: --far (see "
                "program go --help)\n");
}

TEST(ParseFlagsTest, AWordThatADashMakesAFlagOfIsHintedAt) {
  ExpectRefused({"say", "-x"},
                "program: The following argument was not expected: -x; a text "
                "that begins with a dash stands after -- (see program say "
                "--help)\n");
  ExpectRefused({"say", "this", "that"},
                "program: The following argument was not expected: that (see "
                "program say --help)\n");
  EXPECT_EQ(TellOf({"say", "--", "-x"}).exit_status, std::nullopt);
}

}  // namespace
}  // namespace outrider
