// SPDX-License-Identifier: Apache-2.0
// A device that does everything as late as it may, and has what a test gives
// it.
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/emulation/stream.h"
#include "core/kernels/cuda/gpu_fixture.h"
#include "core/kernels/cuda/linear.h"
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

TEST_F(EmulatedGpuTest, AnEventRunsWhatIsBeforeItAndNothingAfterIt) {
  Buffers buffers(*gpu_, 1);
  float before = 7.0f, after = 7.0f;
  const Event event = gpu_->MakeEvent();
  gpu_->Zero(buffers.memory, buffers.size);
  gpu_->Download(&before, buffers.memory, sizeof before);
  EXPECT_EQ(gpu_->Record(event), "");
  gpu_->Download(&after, buffers.memory, sizeof after);
  EXPECT_EQ(before, 7.0f);
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(gpu_->Await(event), "");
    EXPECT_EQ(before, 0.0f);
    EXPECT_EQ(after, 7.0f);
  }
  EXPECT_EQ(gpu_->Finish(), "");
  EXPECT_EQ(after, 0.0f);
  gpu_->Destroy(event);
}

TEST_F(EmulatedGpuTest, AFetchWaitsForItsOwnWaitAloneAndTheStreamForNone) {
  Buffers buffers(*gpu_, 1);
  float fetched = 7.0f, downloaded = 7.0f;
  gpu_->Zero(buffers.memory, buffers.size);
  EXPECT_EQ(gpu_->Finish(), "");
  gpu_->Download(&downloaded, buffers.memory, sizeof downloaded);
  gpu_->Fetch(&fetched, buffers.memory, sizeof fetched);
  EXPECT_EQ(fetched, 7.0f);
  EXPECT_EQ(gpu_->AwaitFetches(), "");
  EXPECT_EQ(fetched, 0.0f);
  EXPECT_EQ(downloaded, 7.0f);
  EXPECT_EQ(gpu_->Finish(), "");
}

TEST_F(EmulatedGpuTest, OneThreadMayAwaitWhileAnotherOneAsks) {
  constexpr int kTimes = 2000;
  Buffers buffers(*gpu_, kTimes);
  std::vector<float> results(kTimes, -1.0f);
  const Event events[] = {gpu_->MakeEvent(), gpu_->MakeEvent()};
  const auto ask = [&](int i) {
    float* const place = static_cast<float*>(buffers.memory) + i;
    buffers.host[i] = static_cast<float>(i);
    gpu_->Upload(place, buffers.host + i, sizeof(float));
    gpu_->Download(&results[i], place, sizeof(float));
    EXPECT_EQ(gpu_->Record(events[i % 2]), "");
  };
  ask(0);
  for (int i = 1; i < kTimes; ++i) {
    std::jthread asks([&] { ask(i); });
    EXPECT_EQ(gpu_->Await(events[(i + 1) % 2]), "");
    EXPECT_EQ(results[i - 1], static_cast<float>(i - 1));
  }
  EXPECT_EQ(gpu_->Finish(), "");
  for (const Event event : events) gpu_->Destroy(event);
}

// Which of its two kernels has run is seen by what a device would have loaded.
TEST_F(EmulatedGpuTest, AProductTakesManyRowsWhereTheDeviceHasBlocksForThem) {
  constexpr int kRows = 66, kOut = 128, kIn = 8;
  const DeviceArray<uint16_t> tiles(PackedBytes(kOut, kIn) / sizeof(uint16_t));
  const DeviceArray<uint16_t> x(size_t{kRows} * kIn);
  const DeviceArray<float> y(size_t{kRows} * kOut);
  const LinearArgs args = {
      .weight = {.tiles = tiles.data(), .out = kOut, .in = kIn},
      .x = x.data(),
      .num_rows = kRows,
      .y = y.data()};
  const auto num_loaded = [&](int num_processors) {
    emulation::ForgetLoaded();
    emulation::SetNumProcessors(num_processors);
    LinearOfManyRows(args, nullptr);
    Linear(args, nullptr);
    return emulation::NumLoaded();
  };
  EXPECT_EQ(num_loaded(1), 1);
  EXPECT_EQ(num_loaded(132), 2);
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

// A model's thread is another one each time, and may have used another GPU.
TEST_F(EmulatedGpuTest, WhateverAThreadHasUsedAGpuIsTheOneThatWasOpened) {
  emulation::SetNumDevices(2);
  std::string error;
  const std::unique_ptr<Gpu> second(OpenGpu(1, &error));
  ASSERT_NE(second, nullptr) << error;
  const auto other = [&]() -> Gpu& {
    EXPECT_EQ(gpu_->Finish(), "");
    return *second;
  };
  EXPECT_NE(other().name(), gpu_->name());
  constexpr size_t kBytes = sizeof(float);
  float from = 3.0f, result = 0, fetched = 0;
  void* const memory = other().Allocate(kBytes);
  void* const copy = other().Allocate(kBytes);
  Event event = other().MakeEvent();
  other().Upload(memory, &from, kBytes);
  ASSERT_TRUE(other().BeginCapture());
  other().Copy(copy, memory, kBytes);
  other().Zero(memory, kBytes);
  Graph graph = other().EndCapture();
  other().Run(graph);
  other().Download(&result, copy, kBytes);
  EXPECT_EQ(other().Record(event), "");
  EXPECT_EQ(other().Await(event), "");
  EXPECT_EQ(result, 3.0f);
  other().Fetch(&fetched, copy, kBytes);
  EXPECT_EQ(other().AwaitFetches(), "");
  EXPECT_EQ(fetched, 3.0f);
  other().Destroy(event);
  other().Destroy(graph);
  other().Free(copy);
  other().Free(memory);
  EXPECT_EQ(other().Finish(), "");
  emulation::SetNumDevices(1);
  EXPECT_EQ(OpenGpu(1, &error), nullptr);
}

}  // namespace
}  // namespace outrider::kernels::cuda
