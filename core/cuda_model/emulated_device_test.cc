// SPDX-License-Identifier: Apache-2.0
// A model and its parts on a device that is what a test makes of it: small, or
// lost.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda_model/graph_cache.h"
#include "core/cuda_model/pinned_pool.h"
#include "core/cuda_model/small_model.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/emulation/stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

namespace emulated = kernels::cuda::emulation;
using ::testing::ElementsAreArray;
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

// It has run no step yet, and been asked of no row.
TEST_F(EmulatedDeviceTest, OfAModelsMemoryNoneIsUnwrittenButKvBlocks) {
  const int before = emulated::NumUnwritten();
  auto model = MakeSmallModel();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(emulated::NumUnwritten(), before);
  ASSERT_TRUE((*model)->AllocateKvBlocks(2).ok());
  EXPECT_EQ(emulated::NumUnwritten(), before + 1);
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

// A launch may need memory of its own, at any time.
TEST_F(EmulatedDeviceTest, GraphsLeaveWhatLaunchesMayNeed) {
  const size_t before = emulated::AvailableMemory();
  Make({.graph_rows = 2,
        .capture_time = kTimeForGraphs,
        .spare_bytes = size_t{1} << 20});
  emulated::SetAvailableMemory((size_t{1} << 20) + 500);
  emulated::SetGraphBytes(300);
  ASSERT_TRUE(model_->Prepare().ok());
  EXPECT_EQ(model_->device_counters()->num_graphs, 2);
  // Nor is one captured later.
  const std::vector<TokenId> tokens = {3, 4, 5};
  const std::vector<KvBlockId> blocks = {0};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(
        model_->Extend({{.blocks = blocks, .tokens = tokens, .num_rows = 3}})[0]
            .ok());
  }
  emulated::SetGraphBytes(0);
  EXPECT_EQ(model_->device_counters()->num_late_graphs, 0);
  EXPECT_EQ(emulated::AvailableMemory(), (size_t{1} << 20) - 100);
  emulated::SetAvailableMemory(before);
}

// A device may finish all that it does before it loads one.
TEST_F(EmulatedDeviceTest, NoKernelIsLoadedOnceAModelServes) {
  emulated::ForgetLoaded();
  // Few enough that passes of more than 64 rows take the kernel for many.
  const int num_processors = emulated::NumProcessors();
  emulated::SetNumProcessors(1);
  Make({.rows = 128, .graph_rows = 128, .capture_time = kTimeForGraphs});
  ASSERT_TRUE(model_->Prepare().ok());
  const int num_loaded = emulated::NumLoaded();
  EXPECT_GT(num_loaded, 0);
  const std::vector<TokenId> tokens(32, 3);
  const std::vector<KvBlockId> first = {0}, branch = {1}, both = {0, 1};
  const NextDraw next = {.support_size = 20, .seed = 77, .position = 9};
  const RowQuestion question = {.vocab_size = 50,
                                .temperature = 1,
                                .what = TopQuestion{.count = 20, .next = next}};
  const auto some = [&](size_t count) {
    return absl::MakeConstSpan(tokens).first(count);
  };
  std::vector<std::vector<Extension>> passes = {
      {{.blocks = first, .tokens = some(8), .num_rows = 0}},
      {{.blocks = branch,
        .cached_length = 8,
        .tokens = some(1),
        .num_rows = 1,
        .copied_block = 0,
        .questions = {&question, 1},
        .max_drawn = 4}}};
  for (const size_t count : {1, 2, 5, 9, 16, 17, 32}) {
    passes.push_back({{.blocks = both, .tokens = some(count), .num_rows = 1}});
  }
  passes.push_back(
      std::vector<Extension>(3, {.blocks = both, .tokens = some(26)}));
  for (const std::vector<Extension>& pass : passes) {
    for (const auto& rows : model_->Extend(pass)) {
      EXPECT_TRUE(rows.ok()) << rows.status();
    }
  }
  EXPECT_GT(model_->device_counters()->num_drawn_tokens, 0);
  EXPECT_EQ(emulated::NumLoaded(), num_loaded);
  emulated::SetNumProcessors(num_processors);
}

// The host has written the next step while the device is at this one.
TEST_F(EmulatedDeviceTest, APassIsLaunchedWithoutAWaitAndFinishedWithOne) {
  Make({.capture_time = {}});
  const std::vector<TokenId> tokens = {3, 4};
  const std::vector<KvBlockId> blocks = {0}, others = {1};
  const RowQuestion question = {
      .vocab_size = 50, .temperature = 1, .what = DrawQuestion{.uniform = 0.3}};
  const std::vector<RowQuestion> questions(2, question);
  const std::vector<Extension> first = {{.blocks = blocks,
                                         .tokens = tokens,
                                         .num_rows = 2,
                                         .questions = questions}};
  const std::vector<Extension> second = {{.blocks = others,
                                          .tokens = tokens,
                                          .num_rows = 2,
                                          .questions = questions}};
  const int64_t copies = emulated::NumPageableCopies();
  const int64_t before = emulated::NumWaits();
  const std::unique_ptr<PendingPass> pass = model_->Launch(first);
  const std::unique_ptr<PendingPass> next = model_->Launch(second);
  EXPECT_EQ(emulated::NumWaits() - before, 0);
  EXPECT_TRUE(pass->Finish()[0].ok());
  EXPECT_EQ(emulated::NumWaits() - before, 1);
  EXPECT_TRUE(next->Finish()[0].ok());
  EXPECT_EQ(emulated::NumWaits() - before, 2);
  EXPECT_EQ(emulated::NumPageableCopies(), copies);
}

// No token of it is drawn by a word from the host.
TEST_F(EmulatedDeviceTest, ADraftIsOneWait) {
  Make({.capture_time = {}});
  const std::vector<TokenId> tokens = {3, 4};
  const std::vector<KvBlockId> blocks = {0};
  const NextDraw draw = {.support_size = 20, .seed = 77, .position = 2};
  const RowQuestion question = {.vocab_size = 50,
                                .temperature = 1,
                                .what = TopQuestion{.count = 20, .next = draw}};
  const std::vector<Extension> batch = {{.blocks = blocks,
                                         .tokens = tokens,
                                         .num_rows = 1,
                                         .questions = {&question, 1},
                                         .max_drawn = 4}};
  const int64_t copies = emulated::NumPageableCopies();
  const int64_t before = emulated::NumWaits();
  const std::unique_ptr<PendingPass> pass = model_->Launch(batch);
  EXPECT_EQ(emulated::NumWaits() - before, 0);
  const PassResults results = pass->Finish();
  ASSERT_TRUE(results[0].ok()) << results[0].status();
  EXPECT_EQ(results[0]->drawn().size(), 4u);
  EXPECT_EQ(emulated::NumWaits() - before, 1);
  EXPECT_EQ(emulated::NumPageableCopies(), copies);
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

// Two passes of one token each, launched both.
class LostInFlightTest : public EmulatedDeviceTest {
 protected:
  void SetUp() override { Make({.capture_time = {}}); }

  std::unique_ptr<PendingPass> Launch() { return model_->Launch(batch_); }
  static absl::StatusCode CodeOf(const std::unique_ptr<PendingPass>& pass) {
    return pass->Finish()[0].status().code();
  }

  const std::vector<TokenId> tokens_ = {3};
  const std::vector<KvBlockId> blocks_ = {0};
  const std::vector<Extension> batch_ = {
      {.blocks = blocks_, .tokens = tokens_, .num_rows = 1}};
};

TEST_F(LostInFlightTest, WhatFailsUnderTheFirstIsToldByIt) {
  const auto first = Launch(), second = Launch();
  emulated::SetFailure("an illegal memory access");
  EXPECT_EQ(CodeOf(first), absl::StatusCode::kUnavailable);
  CodeOf(second);  // a real device would tell it again
}

TEST_F(LostInFlightTest, WhatFailsUnderTheSecondIsToldByItAlone) {
  const auto first = Launch(), second = Launch();
  EXPECT_EQ(CodeOf(first), absl::StatusCode::kOk);
  emulated::SetFailure("an illegal memory access");
  EXPECT_EQ(CodeOf(second), absl::StatusCode::kUnavailable);
}

TEST_F(LostInFlightTest, WhatFailsAsTheSecondIsLaunchedIsToldByItAlone) {
  const auto first = Launch();
  emulated::SetFailure("an illegal memory access");
  const auto second = Launch();
  EXPECT_EQ(CodeOf(first), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(second), absl::StatusCode::kUnavailable);
}

TEST_F(EmulatedDeviceTest, AModelWhoseDeviceMakesNoEventIsRefused) {
  emulated::RefuseEvents(true);
  const auto model = MakeSmallModel();
  emulated::RefuseEvents(false);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(EmulatedDeviceTest, AFailureWhileGraphsAreCapturedIsItToo) {
  Make({.graph_rows = 1, .capture_time = kTimeForGraphs});
  emulated::SetFailure("an illegal memory access");
  EXPECT_EQ(model_->Prepare().code(), absl::StatusCode::kUnavailable);
}

TEST_F(EmulatedDeviceTest, AWholeRowComesWherePinnedMemoryIsOutToo) {
  Make({.capture_time = {}});
  const std::vector<TokenId> tokens = {3, 4};
  const std::vector<KvBlockId> blocks = {0};
  const std::vector<Extension> batch = {
      {.blocks = blocks, .tokens = tokens, .num_rows = 2}};
  // Kept, so that nothing is given back to the pool of pinned rows.
  const auto before = model_->Extend(batch);
  emulated::SetAvailablePinned(0);
  const auto after = model_->Extend(batch);
  emulated::SetAvailablePinned(SIZE_MAX / 2);
  ASSERT_TRUE(before[0].ok() && after[0].ok()) << after[0].status();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(after[0]->Rows()[i], ElementsAreArray(before[0]->Rows()[i]));
  }
}

TEST(PinnedPoolOfEmulatedDeviceTest, WhatTheSystemDoesNotHaveDoesNotCount) {
  PinnedPool pool(GpuUnderTest(), 64);
  emulated::SetAvailablePinned(0);
  EXPECT_EQ(pool.Take(64), nullptr);
  emulated::SetAvailablePinned(SIZE_MAX / 2);
  EXPECT_NE(pool.Take(64), nullptr);
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

TEST_F(ShapesTest, WhatWasRefusedBeforehandIsNotAskedForAgain) {
  emulated::SetGraphBytes(gpu_->AvailableBytes() + 1);
  EXPECT_FALSE(Capture(1));
  emulated::SetGraphBytes(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(1), 1);
  EXPECT_EQ(graphs_.num_captured(), 0);
}

TEST_F(ShapesTest, AGraphThatTheDeviceDoesNotTakeIsAskedForOnce) {
  emulated::SetGraphBytes(gpu_->AvailableBytes() + 1);
  EXPECT_EQ(Run(1), 1);
  EXPECT_EQ(Run(1), 2);  // captured in vain, and done
  emulated::SetGraphBytes(0);
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
  emulated::SetGraphBytes(100);
  for (int i = 0; i < 6; ++i) Run(i % 3);
  EXPECT_EQ(gpu_->AvailableBytes(), before - 300);
  graphs_.Clear();
  EXPECT_EQ(gpu_->AvailableBytes(), before);
  EXPECT_EQ(graphs_.num_captured(), 0);
  EXPECT_EQ(Run(0), 1);
  emulated::SetGraphBytes(0);
}

}  // namespace
}  // namespace outrider
