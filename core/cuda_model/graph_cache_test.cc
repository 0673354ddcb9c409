// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/graph_cache.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/small_model.h"
#include "core/kernels/cuda/emulation/stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(GraphCacheTest, LaunchesOfAShapeAreAskedForTwiceAndDoneEachTime) {
  const std::shared_ptr<Gpu> gpu = GpuUnderTest();
  GraphCache graphs(gpu);
  constexpr size_t kBytes = 4 * sizeof(float);
  const auto memory = DeviceMemory::Allocate(gpu, kBytes, "test");
  ASSERT_TRUE(memory.ok()) << memory.status();
  int num_launches = 0;
  for (int time = 1; time <= 4; ++time) {
    const std::vector<float> before(4, 7.0f);
    std::vector<float> after(4);
    gpu->Upload(memory->data(), before.data(), kBytes);
    graphs.Run({.step = {1, 1, 256, 1}}, [&] {
      ++num_launches;
      gpu->Zero(memory->data(), kBytes / 2);
    });
    gpu->Download(after.data(), memory->data(), kBytes);
    ASSERT_EQ(gpu->Finish(), "");
    EXPECT_EQ(after, (std::vector<float>{0, 0, 7, 7})) << time;
    EXPECT_EQ(num_launches, std::min(time, 2));
    EXPECT_EQ(graphs.num_replays(), std::max(0, time - 1));
    EXPECT_EQ(graphs.num_captured(), time > 1 ? 1 : 0);
    EXPECT_EQ(graphs.num_late(), graphs.num_captured());
  }
}

// Shapes of a cache, and how often each is launched kernel by kernel.
class ShapesTest : public ::testing::Test {
 protected:
  int Run(int num_rows) {
    int num_launches = 0;
    graphs_.Run({.step = {.num_rows = num_rows}}, [&] { ++num_launches; });
    EXPECT_EQ(gpu_->Finish(), "");
    return num_launches;
  }

  bool Capture(int num_rows) {
    return graphs_.Capture({.step = {.num_rows = num_rows}}, [] {});
  }

  const std::shared_ptr<Gpu> gpu_ = GpuUnderTest();
  GraphCache graphs_{gpu_};
};

TEST_F(ShapesTest, WhatWasCapturedBeforehandIsLaunchedTheFirstTime) {
  EXPECT_TRUE(Capture(1));
  EXPECT_EQ(graphs_.num_captured(), 1);
  EXPECT_EQ(graphs_.num_replays(), 0);
  EXPECT_EQ(Run(1), 0);
  EXPECT_EQ(graphs_.num_replays(), 1);
  EXPECT_EQ(graphs_.num_late(), 0);
}

TEST_F(ShapesTest, WhatWasRefusedBeforehandIsNotAskedForAgain) {
  kernels::cuda::emulation::SetGraphBytes(gpu_->AvailableBytes() + 1);
  EXPECT_FALSE(Capture(1));
  kernels::cuda::emulation::SetGraphBytes(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(1), 1);
  EXPECT_EQ(graphs_.num_captured(), 0);
}

TEST_F(ShapesTest, AGraphThatTheDeviceDoesNotTakeIsAskedForOnce) {
  kernels::cuda::emulation::SetGraphBytes(gpu_->AvailableBytes() + 1);
  EXPECT_EQ(Run(1), 1);
  EXPECT_EQ(Run(1), 2);  // captured in vain, and done
  kernels::cuda::emulation::SetGraphBytes(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(1), 1);
  EXPECT_EQ(graphs_.num_captured(), 0);
  EXPECT_EQ(graphs_.num_replays(), 0);
  // Others are not concerned.
  Run(2);
  Run(2);
  EXPECT_EQ(graphs_.num_captured(), 1);
}

TEST_F(ShapesTest, WhatIsClearedGivesItsMemoryBack) {
  const size_t before = gpu_->AvailableBytes();
  kernels::cuda::emulation::SetGraphBytes(100);
  for (int i = 0; i < 6; ++i) Run(i % 3);
  EXPECT_EQ(gpu_->AvailableBytes(), before - 300);
  graphs_.Clear();
  EXPECT_EQ(gpu_->AvailableBytes(), before);
  EXPECT_EQ(graphs_.num_captured(), 0);
  EXPECT_EQ(Run(0), 1);
  kernels::cuda::emulation::SetGraphBytes(0);
}

}  // namespace
}  // namespace outrider
