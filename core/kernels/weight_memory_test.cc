// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/weight_memory.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <string>

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

// The flags that the system has for the mapping of an address.
std::string MappingFlags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto place = reinterpret_cast<uintptr_t>(address);
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) ==
        2) {
      is_inside = begin <= place && place < end;
    }
    if (is_inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(WeightMemoryTest, AsksForHugePages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    GTEST_SKIP() << "this kernel has no huge pages to ask for";
  }
  WeightMemory memory;
  const auto weights = memory.Allocate(size_t{4} << 20);
  EXPECT_THAT(MappingFlags(weights.get()), ::testing::HasSubstr(" hg "));
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
