// SPDX-License-Identifier: Apache-2.0
#include "core/json/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

using ::testing::HasSubstr;

absl::Status ParseStatus(absl::string_view text,
                         const StrictJsonLimits& limits = {}) {
  return ParseStrictJson(text, "x", limits).status();
}

std::string Problem(absl::string_view text,
                    const StrictJsonLimits& limits = {}) {
  return std::string(ParseStatus(text, limits).message());
}

TEST(StrictJsonTest, RefusesWhatCouldBeReadInTwoWays) {
  const auto code = [](absl::string_view text) {
    return ParseStatus(text, {.max_depth = 3, .max_bytes = 40}).code();
  };
  EXPECT_EQ(code(R"({"a": [1, {"b": -2}], "c": null})"), absl::StatusCode::kOk);
  for (const char* bad :
       {"", "3", "[]", "{", "nul", "{} {}", R"({"a":1,"a":1})",
        R"({"a":[{"b":[]}]})", R"({"a":NaN})", R"({"a":1e999})",
        "{\"a\":\"\xff\"}", R"({"a":"\ud800"})", R"({"a":1}})", R"({"a":1,})",
        R"({"long": "                                    "})"}) {
    EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(StrictJsonTest, AKeyMayAppearOncePerObject) {
  EXPECT_EQ(Problem(R"({"a":1,"b":{},"a":2})"), "x: key \"a\" appears twice");
  EXPECT_TRUE(ParseStatus(R"({"a":{"a":1},"b":{"a":[{"a":2}]}})").ok());
}

TEST(StrictJsonTest, LimitsAreExact) {
  const StrictJsonLimits limits = {.max_depth = 2, .max_values = 5};
  EXPECT_TRUE(ParseStatus(R"({"a":[1,2,3]})", limits).ok());
  EXPECT_THAT(Problem(R"({"a":[1,2,3,4]})", limits),
              HasSubstr("more than 5 values"));
  EXPECT_THAT(Problem(R"({"a":[[]]})", limits), HasSubstr("deeper than 2"));
}

}  // namespace
}  // namespace outrider
