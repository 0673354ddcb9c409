// SPDX-License-Identifier: Apache-2.0
// A device that does everything as late as it may, and has what a test gives
// it.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/emulation/stream.h"
#include "core/kernels/cuda/gpu_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::kernels::cuda {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNull;

class EmulatedGpuTest : public GpuTest {};

TEST_F(EmulatedGpuTest, SaysThatItIsNone) {
  ASSERT_EQ(error_, "");
  EXPECT_THAT(gpu_->name(), HasSubstr("no GPU was used"));
  EXPECT_EQ(gpu_->numerics(), "cuda_emulated");
}

TEST_F(EmulatedGpuTest, ANumberThatTheMachineDoesNotHaveIsRefused) {
  std::string error;
  EXPECT_THAT(OpenGpu(1, &error), IsNull());
  EXPECT_EQ(error, "there are 1 GPUs on this machine");
}

TEST_F(EmulatedGpuTest, ADeviceThatMakesNoStreamIsRefused) {
  emulation::RefuseStreams(true);
  std::string error;
  EXPECT_THAT(OpenGpu(0, &error), IsNull());
  emulation::RefuseStreams(false);
  EXPECT_EQ(error, "the device makes no stream: out of memory");
}

TEST_F(EmulatedGpuTest, NothingHasHappenedBeforeFinish) {
  Buffers buffers(*gpu_, 4);
  std::vector<float> result(4, 7.0f);
  gpu_->Zero(buffers.memory, buffers.size);
  gpu_->Download(result.data(), buffers.memory, buffers.size);
  EXPECT_THAT(result, Each(7.0f));
  EXPECT_EQ(gpu_->Finish(), "");
  EXPECT_THAT(result, Each(0.0f));
}

TEST_F(EmulatedGpuTest, ACopyReadsItsMemoryWhenItsTurnComesPinnedOrNot) {
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

TEST_F(EmulatedGpuTest, MemoryIsNullWhereThereIsNoneLeft) {
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

TEST_F(EmulatedGpuTest, AFailureIsToldWhateverIsAskedForInVainMeanwhile) {
  emulation::SetFailure("an illegal memory access");
  emulation::SetAvailablePinned(0);
  EXPECT_THAT(gpu_->AllocatePinned(1), IsNull());
  emulation::SetAvailablePinned(SIZE_MAX / 2);
  ASSERT_TRUE(gpu_->BeginCapture());
  emulation::SetGraphBytes(gpu_->AvailableBytes() + 1);
  EXPECT_THAT(gpu_->EndCapture(), IsNull());
  emulation::SetGraphBytes(0);
  EXPECT_EQ(gpu_->Finish(), "an illegal memory access");
  EXPECT_EQ(gpu_->Finish(), "");
}

// It would leave out a kernel, time and again.
TEST_F(EmulatedGpuTest, AGraphThatLacksALaunchThatFailedIsNone) {
  ASSERT_TRUE(gpu_->BeginCapture());
  emulation::SetFailure("invalid configuration argument");
  EXPECT_THAT(gpu_->EndCapture(), IsNull());
  EXPECT_EQ(gpu_->Finish(), "");
}

}  // namespace
}  // namespace outrider::kernels::cuda
