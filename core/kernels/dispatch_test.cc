// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/dispatch.h"

#include "core/kernels/activation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

TEST(DispatchTest, ThePortableLevelIsAlwaysThereAndTheBestOneLast) {
  EXPECT_EQ(SupportedLevels().front(), Level::kPortable);
  EXPECT_EQ(SupportedLevels().back(), BestLevel());
}

TEST(DispatchTest, LevelsHaveTheNamesThatDescribeShows) {
  EXPECT_STREQ(LevelName(Level::kPortable), "portable");
  EXPECT_STREQ(LevelName(Level::kAvx2), "avx2");
  EXPECT_STREQ(LevelName(Level::kAvx512), "avx512");
  EXPECT_STREQ(LevelName(Level::kAvx512Bf16), "avx512_bf16");
  EXPECT_STREQ(LevelName(Level::kAmxBf16), "amx_bf16");
}

TEST(DispatchDeathTest, ALevelThatTheCpuLacksEndsTheProcessWithItsName) {
  if (BestLevel() == Level::kAmxBf16) {
    GTEST_SKIP() << "NOT RUN: this CPU has every level, so none is refused "
                    "here. One without AMX runs it";
  }
  float x = 0.0f;
  EXPECT_DEATH(Exp(&x, &x, 1, Level::kAmxBf16), "level amx_bf16");
}

}  // namespace
}  // namespace outrider::kernels
