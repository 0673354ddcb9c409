// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/weight_memory.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

TEST(WeightMemoryTest, WeightsLieSideBySideOnCacheLines) {
  WeightMemory memory;
  const auto first = memory.Allocate(100);
  const auto second = memory.Allocate(64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.get()) % (size_t{2} << 20), 0u);
  EXPECT_EQ(static_cast<char*>(second.get()),
            static_cast<char*>(first.get()) + 128);
}

TEST(WeightMemoryTest, IsZeroAndOutlivesWhoGaveItOut) {
  std::optional<WeightMemory> memory(std::in_place);
  const auto weights = memory->Allocate(size_t{3} << 20);
  auto* const bytes = static_cast<char*>(weights.get());
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[(size_t{3} << 20) - 1], 0);
  memory.reset();
  std::memset(bytes, 1, size_t{3} << 20);
  EXPECT_EQ(bytes[(size_t{3} << 20) - 1], 1);
}

TEST(WeightMemoryTest, WhatIsLargerThanARegionHasOneOfItsOwn) {
  WeightMemory memory;
  const auto small = memory.Allocate(64);
  const size_t num_bytes = (size_t{100} << 20) + 1;
  const auto large = memory.Allocate(num_bytes);
  auto* const bytes = static_cast<char*>(large.get());
  bytes[num_bytes - 1] = 1;
  const auto next = memory.Allocate(64);
  EXPECT_EQ(static_cast<char*>(next.get()), bytes + (size_t{100} << 20) + 64);
}

TEST(WeightMemoryTest, WhatNoMachineHasIsRefused) {
  WeightMemory memory;
  EXPECT_THROW(memory.Allocate(size_t{1} << 60), std::bad_alloc);
  EXPECT_NE(memory.Allocate(64), nullptr);
}

}  // namespace
}  // namespace outrider::kernels
