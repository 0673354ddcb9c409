// SPDX-License-Identifier: Apache-2.0
#include "core/wire/rice_code.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace outrider {
namespace {

constexpr uint32_t kLargest = std::numeric_limits<uint32_t>::max();

std::string Written(const std::vector<uint32_t>& values, int parameter) {
  BitWriter writer;
  for (const uint32_t value : values) writer.PutRice(value, parameter);
  return writer.Finish();
}

size_t NumBytes(const std::vector<uint32_t>& values) {
  return Written(values, BestRiceParameter(values)).size();
}

// 5 is 1 twice and 1: 110, then 1; 0 is 0, then 0; bits from the lowest on.
TEST(RiceCodeTest, IsTheOneThatTheProtoDescribes) {
  EXPECT_EQ(Written({5, 0}, 1), std::string(1, '\x0b'));
  EXPECT_EQ(Written({9}, 0), std::string("\xff\x01"));
  EXPECT_EQ(Written({}, 7), "");
}

TEST(RiceCodeTest, EachNumberComesBackWithEachParameter) {
  std::vector<uint32_t> values;
  for (uint32_t value = 0; value < 300; ++value) values.push_back(value);
  for (int r = 0; r <= kMaxRiceParameter; ++r) {
    const std::string bytes = Written(values, r);
    BitReader reader(bytes);
    for (const uint32_t value : values) ASSERT_EQ(reader.GetRice(r), value);
    EXPECT_TRUE(reader.HasEndedWell());
  }
  for (int r = 24; r <= kMaxRiceParameter; ++r) {
    const std::string bytes = Written({kLargest, 1}, r);
    BitReader reader(bytes);
    EXPECT_EQ(reader.GetRice(r), kLargest);
    EXPECT_EQ(reader.GetRice(r), 1u);
    EXPECT_TRUE(reader.HasEndedWell());
  }
}

TEST(RiceCodeTest, PlainBitsAndCodesStandSideBySide) {
  BitWriter writer;
  writer.Put(0x5a, 7);
  writer.PutRice(70, 2);
  writer.Put(kLargest, 32);
  writer.Put(0, 0);
  const std::string bytes = writer.Finish();
  BitReader reader(bytes);
  EXPECT_EQ(reader.Get(7), 0x5au);
  EXPECT_EQ(reader.GetRice(2), 70u);
  EXPECT_EQ(reader.Get(32), kLargest);
  EXPECT_EQ(reader.Get(0), 0u);
  EXPECT_TRUE(reader.HasEndedWell());
}

TEST(RiceCodeTest, TheBestParameterIsBetterThanEveryOther) {
  std::mt19937 generator(3);
  for (const double mean : {0.1, 1.0, 10.0, 1000.0, 1e6}) {
    std::exponential_distribution<double> draw(1 / mean);
    std::vector<uint32_t> values(500);
    for (uint32_t& value : values) {
      value = static_cast<uint32_t>(draw(generator));
    }
    for (int r = 0; r <= kMaxRiceParameter; ++r) {
      if (mean / (1u << r) > 1000) continue;  // much too long
      EXPECT_LE(NumBytes(values), Written(values, r).size()) << mean;
    }
  }
  EXPECT_EQ(BestRiceParameter({}), 0);
  EXPECT_EQ(BestRiceParameter({kLargest}), kMaxRiceParameter);
}

TEST(RiceCodeTest, AReaderFailsWhereTheBytesEnd) {
  for (const std::string& bytes : {std::string(), std::string("\xff\xff")}) {
    BitReader reader(bytes);
    EXPECT_EQ(reader.GetRice(0), 0u);
    EXPECT_FALSE(reader.HasEndedWell());
    EXPECT_EQ(reader.GetRice(3), 0u);
    EXPECT_EQ(reader.Get(1), 0u);
    EXPECT_FALSE(reader.HasEndedWell());
  }
  BitReader half(absl::string_view("\xfe", 1));
  EXPECT_EQ(half.GetRice(8), 0u);
  EXPECT_FALSE(half.HasEndedWell());
}

TEST(RiceCodeTest, AReaderFailsAtNumbersBeyond32Bits) {
  const std::string bytes("\x03\x00\x00\x00\x00", 5);  // 2 and 31 zeros
  BitReader reader(bytes);
  EXPECT_EQ(reader.GetRice(31), 0u);
  EXPECT_FALSE(reader.HasEndedWell());
}

TEST(RiceCodeTest, WhatIsLeftMustBeTheZerosOfOneByte) {
  const auto ends_well = [](absl::string_view bytes) {
    BitReader reader(bytes);
    EXPECT_EQ(reader.GetRice(0), 1u);
    return reader.HasEndedWell();
  };
  EXPECT_TRUE(ends_well({"\x01", 1}));
  EXPECT_FALSE(ends_well({"\x41", 1}));
  EXPECT_FALSE(ends_well({"\x01\x00", 2}));
}

}  // namespace
}  // namespace outrider
