// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/graph_cache.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/small_model.h"
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

// A step that is not captured is launched once, by whoever runs it.
TEST(GraphCacheTest, NothingIsLaunchedWhereNoCaptureBegins) {
  const std::shared_ptr<Gpu> gpu = GpuUnderTest();
  GraphCache graphs(gpu);
  const GraphShape shape = {.step = {.num_rows = 1}};
  int num_launches = 0;
  ASSERT_TRUE(gpu->BeginCapture());  // so that no other one can
  EXPECT_FALSE(graphs.Capture(shape, [&] { ++num_launches; }));
  gpu->Destroy(gpu->EndCapture());
  EXPECT_EQ(num_launches, 0);
  graphs.Run(shape, [&] { ++num_launches; });
  EXPECT_EQ(num_launches, 1);
  EXPECT_EQ(gpu->Finish(), "");
}

TEST(GraphCacheTest, WhatWasCapturedBeforehandIsLaunchedTheFirstTime) {
  const std::shared_ptr<Gpu> gpu = GpuUnderTest();
  GraphCache graphs(gpu);
  const GraphShape shape = {.step = {.num_rows = 1}};
  const auto memory = DeviceMemory::Allocate(gpu, sizeof(float), "test");
  ASSERT_TRUE(memory.ok()) << memory.status();
  int num_launches = 0;
  EXPECT_TRUE(
      graphs.Capture(shape, [&] { gpu->Zero(memory->data(), sizeof(float)); }));
  EXPECT_EQ(graphs.num_captured(), 1);
  EXPECT_EQ(graphs.num_replays(), 0);
  graphs.Run(shape, [&] { ++num_launches; });
  EXPECT_EQ(gpu->Finish(), "");
  EXPECT_EQ(num_launches, 0);
  EXPECT_EQ(graphs.num_replays(), 1);
  EXPECT_EQ(graphs.num_late(), 0);
}

}  // namespace
}  // namespace outrider
