// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/philox.h"

#include <array>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers of Random123 for philox4x32-10.
TEST(PhiloxTest, GivesThePublishedAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Digits of pi.
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, ARunIsOneCounterAfterTheOther) {
  const std::array<uint32_t, 2> key = {0xa4093822, 0x299f31d0};
  for (const size_t count : {0, 1, 3, 8, 101}) {
    std::vector<uint64_t> bits(2 * count);
    PhiloxRun({0xfffffffa, 7, 0, 5u << 24}, key, absl::MakeSpan(bits));
    for (size_t i = 0; i < count; ++i) {
      const Words words = Philox4x32(
          {0xfffffffa + static_cast<uint32_t>(i), 7, 0, 5u << 24}, key);
      EXPECT_EQ(bits[2 * i], uint64_t{words[1]} << 32 | words[0]);
      EXPECT_EQ(bits[2 * i + 1], uint64_t{words[3]} << 32 | words[2]);
    }
  }
}

}  // namespace
}  // namespace outrider
