// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrider {
namespace {

using ::testing::HasSubstr;

absl::Status ParseStatus(absl::string_view text,
                         const JsonLimits& limits = {}) {
  return ParseJson(text, limits).status();
}

TEST(JsonFieldsTest, WhatIsNotJsonIsInvalid) {
  for (const absl::string_view text :
       {"", "{", "[1,]", "nul", "{} {}", "\"\\ud800\"", "\"\xFF\"", "1e999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseStatus(text))) << text;
  }
  EXPECT_TRUE(ParseStatus("{\"a\": [1, null]}").ok());
}

TEST(JsonFieldsTest, AKeyMayOccurOncePerObject) {
  EXPECT_THAT(std::string(ParseStatus("{\"a\":1,\"b\":{},\"a\":2}").message()),
              HasSubstr("'a' occurs twice"));
  EXPECT_TRUE(ParseStatus("{\"a\":{\"a\":1},\"b\":{\"a\":[{\"a\":2}]}}").ok());
}

TEST(JsonFieldsTest, LimitsAreExact) {
  const JsonLimits limits = {.max_depth = 2, .max_values = 100};
  EXPECT_TRUE(ParseStatus("[[1]]", limits).ok());
  EXPECT_THAT(std::string(ParseStatus("[[[]]]", limits).message()),
              HasSubstr("too deep"));
  EXPECT_TRUE(ParseStatus("[[],[],[],[],[]]", limits).ok());
  std::string many = "[1";
  for (int i = 0; i < 100; ++i) many += ",1";
  EXPECT_THAT(std::string(ParseStatus(many + "]", limits).message()),
              HasSubstr("too many values"));
}

TEST(JsonFieldsTest, FieldsAreReadByTypeAndNullIsMissing) {
  const auto value =
      ParseJson("{\"s\":\"x\",\"b\":true,\"n\":null,\"o\":{},\"a\":[]}");
  ASSERT_TRUE(value.ok());
  const auto fields = JsonFields::Of(*value, "it");
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields->String("s").value(), "x");
  EXPECT_EQ(fields->String("n", "y").value(), "y");
  EXPECT_TRUE(fields->Bool("b", false).value());
  EXPECT_TRUE(fields->Bool("n", true).value());
  EXPECT_TRUE(fields->Object("o").ok());
  EXPECT_TRUE(fields->Array("a").ok());
  EXPECT_EQ(fields->String("n").status().message(), "it has no field 'n'");
  EXPECT_EQ(fields->String("b").status().message(), "it.b is not a string");
  EXPECT_EQ(fields->String("b", "").status().message(), "it.b is not a string");
  EXPECT_FALSE(fields->Bool("s", false).ok());
  EXPECT_FALSE(fields->Object("a").ok());
  EXPECT_FALSE(fields->Array("o").ok());
  EXPECT_FALSE(JsonFields::Of((*value)["a"], "it").ok());
}

TEST(JsonFieldsTest, AFieldNobodyKnowsIsNamed) {
  const auto value = ParseJson("{\"a\":1,\"b\":2}");
  const auto fields = JsonFields::Of(*value, "it");
  EXPECT_TRUE(fields->AllAmong({"b", "a", "c"}).ok());
  EXPECT_EQ(fields->AllAmong({"a"}),
            absl::UnimplementedError("it has the unknown field 'b'"));
}

TEST(JsonFieldsTest, AnIndexIsAWholeNumberBelowItsLimit) {
  EXPECT_EQ(JsonIndex(*ParseJson("0"), 1, "x").value(), 0);
  for (const absl::string_view text : {"1", "-1", "0.0", "\"0\"", "null",
                                       "18446744073709551615", "4294967296"}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(JsonIndex(*ParseJson(text), 1, "x").status()))
        << text;
  }
}

}  // namespace
}  // namespace outrider
