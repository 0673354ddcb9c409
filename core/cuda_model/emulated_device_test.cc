// SPDX-License-Identifier: Apache-2.0
// A model on a device that is what a test makes of it: small, or lost.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda_model/small_model.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/emulation/stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

namespace emulated = kernels::cuda::emulation;
using ::testing::HasSubstr;

class EmulatedDeviceTest : public ::testing::Test {
 protected:
  // It has two blocks.
  void Make(const CudaLimits& limits) {
    auto model = MakeSmallModel(limits);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    ASSERT_TRUE(model_->AllocateKvBlocks(2).ok());
  }

  std::unique_ptr<CausalLm> model_;
};

TEST_F(EmulatedDeviceTest, AModelSaysThatNoGpuRunsIt) {
  Make({});
  EXPECT_EQ(model_->info().numerics, "cuda_emulated");
  EXPECT_EQ(model_->info().device_name, GpuUnderTest()->name());
}

TEST_F(EmulatedDeviceTest, GraphsTakeNoMoreMemoryThanTheyMay) {
  Make(
      {.graph_rows = 2, .capture_time = kTimeForGraphs, .capture_bytes = 1000});
  const size_t before = emulated::AvailableMemory();
  emulated::SetGraphBytes(300);
  ASSERT_TRUE(model_->Prepare().ok());
  emulated::SetGraphBytes(0);
  // The last one goes beyond it.
  EXPECT_EQ(model_->device_counters()->num_graphs, 4);
  EXPECT_EQ(before - emulated::AvailableMemory(), 1200u);
}

// What the device refused before it is not asked for again while others wait.
TEST_F(EmulatedDeviceTest, AModelServesWhereItsDeviceTakesNoGraph) {
  Make({.graph_rows = 2, .capture_time = kTimeForGraphs});
  emulated::SetGraphBytes(emulated::AvailableMemory() + 1);
  EXPECT_TRUE(model_->Prepare().ok());
  emulated::SetGraphBytes(0);
  const std::vector<TokenId> tokens = {3};
  const std::vector<KvBlockId> blocks = {0};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(
        model_->Extend({{.blocks = blocks, .tokens = tokens, .num_rows = 1}})[0]
            .ok());
  }
  EXPECT_EQ(model_->device_counters()->num_graph_replays, 0);
}

TEST_F(EmulatedDeviceTest, AModelThatDoesNotFitIsRefused) {
  const size_t before = emulated::AvailableMemory();
  auto weights = MakeSmallWeights(GpuUnderTest());
  emulated::SetAvailableMemory(100000);
  const auto model =
      MakeCudaCausalLm(GpuUnderTest(), {}, SmallConfig(), std::move(weights));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  emulated::SetAvailableMemory(before);
}

TEST_F(EmulatedDeviceTest, AFailureIsTheLossOfTheDevice) {
  Make({});
  emulated::SetFailure("an illegal memory access");
  const std::vector<TokenId> tokens = {3, 4};
  const std::vector<KvBlockId> blocks = {0};
  const auto results =
      model_->Extend({{.blocks = blocks, .tokens = tokens, .num_rows = 1}});
  EXPECT_EQ(results[0].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(results[0].status().message()),
              HasSubstr("an illegal memory access"));
}

TEST_F(EmulatedDeviceTest, AFailureWhileGraphsAreCapturedIsItToo) {
  Make({.graph_rows = 1, .capture_time = kTimeForGraphs});
  emulated::SetFailure("an illegal memory access");
  EXPECT_EQ(model_->Prepare().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace outrider
