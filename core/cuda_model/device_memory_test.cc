// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/device_memory.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "core/cuda_model/small_model.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(DeviceMemoryTest, WhatIsToBeZeroIsSoToItsLastByte) {
  const std::shared_ptr<Gpu> gpu = GpuUnderTest();
  for (const size_t bytes : {size_t{1}, size_t{255}, size_t{5000}}) {
    const auto memory = DeviceMemory::AllocateZeroed(gpu, bytes, "test");
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(memory->bytes(), bytes);
    std::vector<uint8_t> read(bytes, 7);
    gpu->Download(read.data(), memory->data(), bytes);
    ASSERT_EQ(gpu->Finish(), "");
    EXPECT_EQ(read, std::vector<uint8_t>(bytes, 0));
  }
}

}  // namespace
}  // namespace outrider
