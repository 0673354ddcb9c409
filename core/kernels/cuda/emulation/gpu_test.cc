// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/gpu.h"

#include <cstring>
#include <memory>
#include <vector>

#include "core/kernels/cuda/emulation/stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::kernels::cuda {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNull;

class GpuTest : public ::testing::Test {
 protected:
  GpuTest() : gpu_(OpenGpu(0, &error_)) {}

  std::string error_;
  const std::unique_ptr<Gpu> gpu_;
};

// Pinned host memory and device memory of the same size.
struct Buffers {
  Buffers(Gpu& device, size_t count)
      : gpu(device),
        size(count * sizeof(float)),
        host(static_cast<float*>(gpu.AllocatePinned(size))),
        memory(gpu.Allocate(size)) {}
  ~Buffers() {
    gpu.FreePinned(host);
    gpu.Free(memory);
  }

  Gpu& gpu;
  const size_t size;
  float* const host;
  void* const memory;
};

TEST_F(GpuTest, SaysThatItIsNone) {
  ASSERT_EQ(error_, "");
  EXPECT_THAT(gpu_->name(), HasSubstr("no GPU was used"));
  EXPECT_EQ(gpu_->numerics(), "cuda_emulated");
}

TEST_F(GpuTest, ANumberThatTheMachineDoesNotHaveIsRefused) {
  std::string error;
  EXPECT_THAT(OpenGpu(1, &error), IsNull());
  EXPECT_EQ(error, "there are 1 GPUs on this machine");
}

TEST_F(GpuTest, NothingHasHappenedBeforeFinish) {
  Buffers buffers(*gpu_, 4);
  std::vector<float> result(4, 7.0f);
  gpu_->Zero(buffers.memory, buffers.size);
  gpu_->Download(result.data(), buffers.memory, buffers.size);
  EXPECT_THAT(result, Each(7.0f));
  EXPECT_EQ(gpu_->Finish(), "");
  EXPECT_THAT(result, Each(0.0f));
}

TEST_F(GpuTest, ACopyReadsItsMemoryWhenItsTurnComesPinnedOrNot) {
  Buffers buffers(*gpu_, 1);
  for (const bool is_pinned : {true, false}) {
    float pageable = 1.0f, result = 0.0f;
    float& from = is_pinned ? *buffers.host : pageable;
    from = 1.0f;
    gpu_->Upload(buffers.memory, &from, sizeof from);
    from = 2.0f;
    gpu_->Download(&result, buffers.memory, sizeof result);
    EXPECT_EQ(gpu_->Finish(), "");
    EXPECT_EQ(result, 2.0f);
  }
}

TEST_F(GpuTest, AGraphReadsWhatMemoryHoldsWhenItIsLaunched) {
  Buffers from(*gpu_, 1), to(*gpu_, 1);
  gpu_->BeginCapture();
  gpu_->Upload(from.memory, from.host, from.size);
  gpu_->Download(to.host, from.memory, from.size);
  const Graph graph = gpu_->EndCapture();
  *to.host = 0.0f;
  EXPECT_EQ(gpu_->Finish(), "");
  EXPECT_EQ(*to.host, 0.0f);  // captured, and not run
  for (const float value : {3.0f, 4.0f}) {
    *from.host = value;
    gpu_->Run(graph);
    EXPECT_EQ(gpu_->Finish(), "");
    EXPECT_EQ(*to.host, value);
  }
  gpu_->Destroy(graph);
}

TEST_F(GpuTest, MemoryIsNullWhereThereIsNoneLeft) {
  const size_t before = gpu_->AvailableBytes();
  emulation::SetAvailableMemory(100);
  void* const memory = gpu_->Allocate(60);
  EXPECT_EQ(gpu_->AvailableBytes(), 40u);
  EXPECT_THAT(gpu_->Allocate(60), IsNull());
  gpu_->Free(memory);
  EXPECT_EQ(gpu_->AvailableBytes(), 100u);
  EXPECT_EQ(gpu_->Finish(), "");  // no failure of what comes after it
  emulation::SetAvailableMemory(before);
}

TEST_F(GpuTest, AKernelThatFailsIsToldOnceByFinish) {
  gpu_->Run(LinearArgs{.weight = {.out = 16 * 65536, .in = 8}, .num_rows = 1});
  EXPECT_THAT(gpu_->Finish(), HasSubstr("limits"));
  EXPECT_EQ(gpu_->Finish(), "");
}

}  // namespace
}  // namespace outrider::kernels::cuda
