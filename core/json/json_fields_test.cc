// SPDX-License-Identifier: Apache-2.0
#include "core/json/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

using nlohmann::json;

TEST(JsonFieldsTest, FieldsAreReadByTypeAndNullIsMissing) {
  const json value = json::parse(
      R"({"s":"x","b":true,"n":null,"o":{},"a":[],"i":-3,"d":0.5})");
  const auto fields = JsonFields::Of(value, "it");
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields->String("s").value(), "x");
  EXPECT_EQ(fields->String("n", "y").value(), "y");
  EXPECT_TRUE(fields->Bool("b").value());
  EXPECT_TRUE(fields->Bool("n", true).value());
  EXPECT_EQ(fields->Int("i", -3, 0).value(), -3);
  EXPECT_EQ(fields->Number("d").value(), 0.5);
  EXPECT_EQ(fields->Number("i").value(), -3.0);
  EXPECT_TRUE(fields->Object("o").ok());
  EXPECT_TRUE(fields->Array("a").ok());
  EXPECT_TRUE(fields->IsNull("n"));
  EXPECT_FALSE(fields->IsNull("s"));
  EXPECT_EQ(fields->Find("n"), nullptr);
}

TEST(JsonFieldsTest, AMessageSaysWhereTheFieldIsAndWhatItHolds) {
  const json value =
      json::parse(R"({"b":true,"n":null,"o":{"s":1},"a":[],"i":7})");
  const auto fields = JsonFields::Of(value, "it");
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields->String("n").status(),
            absl::InvalidArgumentError("it: n is missing"));
  EXPECT_EQ(fields->String("b").status(),
            absl::InvalidArgumentError("it: b is true, not a string"));
  EXPECT_EQ(fields->String("b", "").status(), fields->String("b").status());
  EXPECT_EQ(fields->Int("i", 0, 6).status().message(),
            "it: i is 7, not an integer in [0, 6]");
  EXPECT_EQ(fields->Object("o")->String("s").status().message(),
            "it: o: s is 1, not a string");
  EXPECT_FALSE(fields->Bool("i", false).ok());
  EXPECT_FALSE(fields->Number("b").ok());
  EXPECT_FALSE(fields->Object("a").ok());
  EXPECT_FALSE(fields->Array("o").ok());
  EXPECT_EQ(JsonFields::Of(value["a"], "it").status().message(),
            "it is not an object");
}

TEST(JsonFieldsTest, ANumberBeyondEveryIntegerIsOutOfRange) {
  const json value = json::parse(R"({"i": 18446744073709551615, "d": 1.5})");
  const auto fields = JsonFields::Of(value, "it");
  EXPECT_FALSE(fields->Int("i", -5, 5).ok());
  EXPECT_FALSE(fields->Int("d", -5, 5).ok());
}

TEST(JsonFieldsTest, AFieldNobodyKnowsIsNamed) {
  const json value = {{"a", 1}, {"b", 2}};
  const auto fields = JsonFields::Of(value, "it");
  EXPECT_TRUE(fields->AllAmong({"b", "a", "c"}).ok());
  EXPECT_EQ(fields->AllAmong({"a"}),
            absl::UnimplementedError("it: the field 'b' is not supported"));
}

TEST(JsonFieldsTest, AnIndexIsAWholeNumberBelowItsLimit) {
  EXPECT_EQ(JsonIndex(json::parse("0"), 1, "x").value(), 0);
  for (const char* text : {"1", "-1", "0.0", "\"0\"", "null",
                           "18446744073709551615", "4294967296"}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(JsonIndex(json::parse(text), 1, "x").status()))
        << text;
  }
}

}  // namespace
}  // namespace outrider
