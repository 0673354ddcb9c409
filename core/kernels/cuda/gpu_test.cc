// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/gpu.h"

#include <string>

#include "core/kernels/cuda/gpu_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// What holds of every device; what only an emulated one can be made to do is in
// emulation/emulated_gpu_test.cc.
namespace outrider::kernels::cuda {
namespace {

using ::testing::IsNull;
using ::testing::Not;

constexpr size_t kMoreThanThereIs = size_t{1} << 50;

// More blocks than a launch may have.
constexpr EmbedArgs kTooLarge = {.table = {.in = 8}, .num_rows = 65536};

TEST_F(GpuTest, AGraphReadsWhatMemoryHoldsWhenItIsLaunched) {
  Buffers from(*gpu_, 1), to(*gpu_, 1);
  ASSERT_TRUE(gpu_->BeginCapture());
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

TEST_F(GpuTest, MemoryThatIsNotThereIsNullAndNoFailureOfWhatFollows) {
  EXPECT_THAT(gpu_->Allocate(kMoreThanThereIs), IsNull());
  EXPECT_EQ(gpu_->Finish(), "");
}

class EventTest : public GpuTest {
 protected:
  ~EventTest() override { gpu_->Destroy(event_); }

  const Event event_ = gpu_->MakeEvent();
};

TEST_F(EventTest, WhatCameBeforeItIsDoneOnceItWasAwaited) {
  Buffers from(*gpu_, 1), to(*gpu_, 1);
  for (const float value : {3.0f, 4.0f}) {
    *from.host = value;
    gpu_->Upload(from.memory, from.host, from.size);
    gpu_->Download(to.host, from.memory, from.size);
    EXPECT_EQ(gpu_->Record(event_), "");
    EXPECT_EQ(gpu_->Await(event_), "");
    EXPECT_EQ(*to.host, value);
  }
}

TEST_F(EventTest, AKernelThatFailsBeforeItIsToldByOneOfTheTwo) {
  gpu_->Run(kTooLarge);
  const std::string recorded = gpu_->Record(event_);
  EXPECT_NE(recorded + gpu_->Await(event_), "");
  EXPECT_EQ(gpu_->Finish(), "");
}

TEST_F(GpuTest, WhatIsFetchedIsThereOnceFetchesWereAwaited) {
  Buffers from(*gpu_, 1), to(*gpu_, 1);
  *from.host = 5.0f;
  gpu_->Upload(from.memory, from.host, from.size);
  EXPECT_EQ(gpu_->Finish(), "");
  gpu_->Fetch(to.host, from.memory, from.size);
  EXPECT_EQ(gpu_->AwaitFetches(), "");
  EXPECT_EQ(*to.host, 5.0f);
}

TEST_F(GpuTest, AKernelThatFailsIsToldOnceByFinish) {
  gpu_->Run(kTooLarge);
  EXPECT_THAT(gpu_->Finish(), Not(""));
  EXPECT_EQ(gpu_->Finish(), "");
}

TEST_F(GpuTest, ItIsToldWhereMemoryWasAskedForInVainMeanwhile) {
  gpu_->Run(kTooLarge);
  EXPECT_THAT(gpu_->Allocate(kMoreThanThereIs), IsNull());
  EXPECT_THAT(gpu_->Finish(), Not(""));
  EXPECT_EQ(gpu_->Finish(), "");
}

}  // namespace
}  // namespace outrider::kernels::cuda
