// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/pinned_pool.h"

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
