// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/bfloat16.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/kernels/attention.h"
#include "core/kernels/dispatch.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(BFloat16Test, EveryValueSurvivesTheWayToFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const BFloat16 x = {static_cast<uint16_t>(bits)};
    const float wide = ToFloat(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(ToFloat(ToBFloat16(wide))));
    } else {
      EXPECT_EQ(ToBFloat16(wide), x);
    }
  }
}

TEST(BFloat16Test, TiesGoToTheEvenNeighbour) {
  EXPECT_EQ(ToBFloat16(FromBits(0x3f808000u)).bits, 0x3f80);
  EXPECT_EQ(ToBFloat16(FromBits(0x3f818000u)).bits, 0x3f82);
  EXPECT_EQ(ToBFloat16(FromBits(0xbf808000u)).bits, 0xbf80);
  EXPECT_EQ(ToBFloat16(FromBits(0xbf818000u)).bits, 0xbf82);
}

TEST(BFloat16Test, OtherValuesGoToTheNearestOne) {
  EXPECT_EQ(ToBFloat16(FromBits(0x3f807fffu)).bits, 0x3f80);
  EXPECT_EQ(ToBFloat16(FromBits(0x3f808001u)).bits, 0x3f81);
  EXPECT_EQ(ToBFloat16(FromBits(0x3fffffffu)).bits, 0x4000);
}

TEST(BFloat16Test, TheLargestFloatsRoundToInfinity) {
  EXPECT_EQ(ToBFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(ToBFloat16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

TEST(BFloat16Test, ANanWithOnlyLowBitsDoesNotBecomeInfinity) {
  EXPECT_EQ(ToBFloat16(FromBits(0x7f800001u)).bits, 0x7fc0);
  EXPECT_EQ(ToBFloat16(FromBits(0xffffffffu)).bits, 0xffff);
}

TEST(BFloat16Test, EveryLevelRoundsLikeTheScalarFunction) {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 0x10000u; upper += 7) {
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(FromBits((upper << 16) | lower));
    }
  }
  const int size = static_cast<int>(values.size()) - 1;  // odd: with a tail
  for (const Level level : SupportedLevels()) {
    std::vector<BFloat16> stored(values.size(), BFloat16{0x1234});
    const KvBlockId block = 0;
    StoreKv({.segments = {{.blocks = &block, .num_rows = 1}},
             .from = values.data(),
             .from_stride = size,
             .row_size = size,
             .to = stored.data()},
            level);
    for (int i = 0; i < size; ++i) {
      ASSERT_EQ(stored[i], ToBFloat16(values[i]))
          << LevelName(level) << " " << std::bit_cast<uint32_t>(values[i]);
    }
    EXPECT_EQ(stored[size].bits, 0x1234) << "written beyond the row";
  }
}

}  // namespace
}  // namespace outrider::kernels
