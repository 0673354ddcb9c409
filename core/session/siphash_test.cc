// SPDX-License-Identifier: Apache-2.0
#include "core/session/siphash.h"

#include <numeric>
#include <string>

#include "gtest/gtest.h"

namespace outrider {
namespace {

// The authors' vectors: key 00..0f, input 00..(length - 1).
TEST(SipHashTest, GivesThePublishedAnswers) {
  std::array<uint8_t, 16> key;
  std::iota(key.begin(), key.end(), uint8_t{0});
  const auto hash = [&](size_t length) {
    std::string input(length, '\0');
    std::iota(input.begin(), input.end(), char{0});
    return SipHash24(key, input);
  };
  EXPECT_EQ(hash(0), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(hash(1), 0x74f839c593dc67fdu);
  EXPECT_EQ(hash(8), 0x93f5f5799a932462u);
  EXPECT_EQ(hash(15), 0xa129ca6149be45e5u);
}

TEST(SipHashTest, DependsOnTheWholeKey) {
  std::array<uint8_t, 16> key = {};
  const uint64_t zero = SipHash24(key, "outrider");
  for (uint8_t& byte : key) {
    byte = 1;
    EXPECT_NE(SipHash24(key, "outrider"), zero);
    byte = 0;
  }
}

}  // namespace
}  // namespace outrider
