// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/pinned_pool.h"

#include <cstddef>
#include <memory>

#include "core/cuda_model/small_model.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(PinnedPoolTest, WhatWasGivenBackIsHandedOutAgain) {
  PinnedPool pool(GpuUnderTest());
  auto piece = pool.Take(100);
  const void* const first = piece.get();
  piece.reset();
  piece = pool.Take(128);  // of the same power of two
  EXPECT_EQ(piece.get(), first);
  EXPECT_NE(pool.Take(128).get(), first);
}

TEST(PinnedPoolTest, ALargePieceTakesLittleMoreThanItsBytes) {
  // A row of 152 000 tokens: the next power of two is 1.7 times that.
  constexpr size_t kRowBytes = size_t{152000} * sizeof(float);
  PinnedPool pool(GpuUnderTest(), 3 * kRowBytes * 11 / 10);
  const auto first = pool.Take(kRowBytes);
  const auto second = pool.Take(kRowBytes);
  auto third = pool.Take(kRowBytes);
  ASSERT_NE(third, nullptr);
  const void* const place = third.get();
  static_cast<char*>(third.get())[kRowBytes - 1] = 1;
  third.reset();
  EXPECT_EQ(pool.Take(kRowBytes - 1).get(), place);
  EXPECT_EQ(pool.Take(kRowBytes * 2), nullptr);
}

TEST(PinnedPoolTest, BeyondItsMostThereIsNoneButOtherMemory) {
  PinnedPool pool(GpuUnderTest(), 192);
  const auto piece = pool.Take(64);
  auto large = pool.Take(128);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(pool.Take(1), nullptr);
  EXPECT_NE(pool.TakeAny(64), nullptr);
  // Kept for its like, it still counts.
  large.reset();
  EXPECT_EQ(pool.Take(64), nullptr);
  EXPECT_NE(pool.Take(128), nullptr);
}

TEST(PinnedPoolTest, APieceLivesOnAfterThePool) {
  std::shared_ptr<void> piece;
  {
    PinnedPool pool(GpuUnderTest());
    piece = pool.Take(64);
  }
  static_cast<char*>(piece.get())[63] = 1;
}

}  // namespace
}  // namespace outrider
