// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/graph_cache.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/small_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(GraphCacheTest, ABucketHasPowersOfTwoAndWholeSplits) {
  EXPECT_EQ(BucketOf({5, 3, 257, 0}), (StepShape{8, 4, 512, 0}));
  EXPECT_EQ(BucketOf({64, 1, 1025, 5}), (StepShape{64, 1, 2048, 8}));
  EXPECT_EQ(BucketOf({1, 2, 256, 1}), (StepShape{1, 2, 256, 1}));
}

TEST(GraphCacheTest, LaunchesOfAShapeAreAskedForTwiceAndDoneEachTime) {
  const std::shared_ptr<Gpu> gpu = EmulatedGpu();
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
  }
}

TEST(GraphCacheTest, MoreShapesThanItKeepsAreStillDone) {
  const std::shared_ptr<Gpu> gpu = EmulatedGpu();
  GraphCache graphs(gpu);
  int num_launches = 0;
  const auto run = [&](int num_rows) {
    graphs.Run({.step = {.num_rows = num_rows}}, [&] { ++num_launches; });
  };
  constexpr int kMost = static_cast<int>(GraphCache::kMaxGraphs);
  for (int i = 0; i <= kMost; ++i) run(i);
  EXPECT_EQ(num_launches, kMost + 1);
  run(0);  // forgotten meanwhile
  run(0);
  run(0);
  EXPECT_EQ(num_launches, kMost + 3);
}

}  // namespace
}  // namespace outrider
