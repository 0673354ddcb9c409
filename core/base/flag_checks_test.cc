// SPDX-License-Identifier: Apache-2.0
#include "core/base/flag_checks.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

namespace outrider {
namespace {

TEST(FlagChecksTest, ANumberIsInItsRangeOrRefused) {
  const CLI::Validator check =
      NumberIn({.low = 1e-6, .high = 1, .has_high = false});
  for (const std::string good : {"1e-6", "0.5", "0.999999999", ".25"}) {
    EXPECT_EQ(check(good), "") << good;
  }
  for (const std::string bad : {"nan", "NaN", "-nan", "inf", "-inf", "1e999",
                                "0", "1", "1.0001", "x", "", "0.5x"}) {
    EXPECT_NE(check(bad), "") << bad;
  }
  EXPECT_EQ(check("nan"),
            "needs a number at least 1e-06 and below 1, not \"nan\"");
}

TEST(FlagChecksTest, AWholeNumberIsInItsRangeOrRefused) {
  const CLI::Validator check = WholeNumberIn(1, UINT64_MAX);
  for (const std::string good : {"1", "18446744073709551615"}) {
    EXPECT_EQ(check(good), "") << good;
  }
  for (const std::string bad :
       {"0", "-1", "1.5", "1e3", "18446744073709551616", "0x10", "x", ""}) {
    EXPECT_NE(check(bad), "") << bad;
  }
  EXPECT_EQ(WholeNumberIn(0, 20)("21"),
            "needs a whole number between 0 and 20, not \"21\"");
}

TEST(FlagChecksTest, AWordMayStandForANumber) {
  const CLI::Validator check = WholeNumberIn(0, 20, "auto");
  EXPECT_EQ(check("auto"), "");
  EXPECT_EQ(check("20"), "");
  EXPECT_EQ(check("autos"),
            "needs a whole number between 0 and 20, or auto, not \"autos\"");
  EXPECT_NE(WholeNumberIn(0, 20)(""), "");
}

TEST(FlagChecksTest, AWordIsOneOfThoseThatThereAre) {
  const CLI::Validator check = OneOf({"salted", "off"});
  EXPECT_EQ(check("off"), "");
  EXPECT_EQ(check("on"), "needs one of salted, off, not \"on\"");
  EXPECT_NE(check(""), "");
  EXPECT_NE(check("Off"), "");
}

// What the option made of its argument, or the error.
std::string Named(const std::string& argument) {
  CLI::App app("It serves.", "program");
  std::optional<int> place;
  AddNamedOption(app, "--place", place,
                 std::map<std::string, int>{{"first", 1}, {"second", 2}},
                 "where");
  try {
    app.parse("--place " + argument);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return std::to_string(place.value_or(0));
}

TEST(FlagChecksTest, ANameStandsForItsValueAndNumbersForNone) {
  EXPECT_EQ(Named("second"), "2");
  for (const std::string bad : {"2", "third"}) {
    EXPECT_EQ(Named(bad),
              "--place: needs one of first, second, not \"" + bad + "\"");
  }
}

}  // namespace
}  // namespace outrider
