// SPDX-License-Identifier: Apache-2.0
#include "core/base/help_formatter.h"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/flag_checks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HelpFormatterTest, AFlagItsArgumentAndDefaultAndBeneathWhatItDoes) {
  CLI::App app(
      "It serves whoever comes, in the order in which they came, and says so "
      "in a line of more than eighty columns.",
      "program");
  app.formatter(std::make_shared<HelpFormatter>());
  std::string listen = "127.0.0.1:0";
  std::vector<std::string> peers;
  int size = 3;
  bool fast = false;
  app.add_option("--listen", listen, "where")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("--peer", peers, "whom")->required();
  app.add_option("-n,--size", size,
                 "one word after the other, so many of them that this text "
                 "does not fit a line of eighty columns")
      ->check(WholeNumberIn(0, 10))
      ->capture_default_str();
  app.add_flag("--fast,!--slow", fast, "go");
  const std::string help = app.help();
  EXPECT_THAT(help, HasSubstr("It serves whoever comes, in the order in which "
                              "they came, and says so in a line\nof more"));
  EXPECT_THAT(help, HasSubstr("\n  --listen ADDRESS (default: 127.0.0.1:0)\n"
                              "      where\n"));
  EXPECT_THAT(help, HasSubstr("\n  --peer TEXT ... (needed)\n      whom\n"));
  EXPECT_THAT(help, HasSubstr("\n  -n,--size N (default: 3)\n      one word"));
  EXPECT_THAT(help, HasSubstr("\n  --fast,--slow\n      go\n"));
  EXPECT_THAT(help, Not(HasSubstr("0 - 10")));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace
}  // namespace outrider
