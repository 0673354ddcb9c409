// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/rows_in_flight.h"

#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/cuda_model/small_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::Each;

constexpr int kRows = 3, kRowSize = 4;
constexpr size_t kNumLogits = size_t{kRows} * kRowSize;

// Steps that leave one number each.
class RowsInFlightTest : public ::testing::Test {
 protected:
  struct Step {
    StepInFlight flight;
    std::vector<float> logits = std::vector<float>(kNumLogits);
  };

  RowsInFlightTest() {
    auto memory =
        DeviceMemory::Allocate(gpu_, kNumLogits * sizeof(float), "logits");
    EXPECT_TRUE(memory.ok());
    memory_ = std::make_unique<DeviceMemory>(*std::move(memory));
    auto rows = RowsInFlight::Make(gpu_, counters_,
                                   {.logits = memory_->as<const float>(),
                                    .max_rows = kRows,
                                    .vocab_size = kRowSize});
    EXPECT_TRUE(rows.ok()) << rows.status();
    rows_ = *std::move(rows);
    for (int i = 0; i < kStepsInFlight; ++i) {
      auto end = DeviceEvent::Make(gpu_);
      EXPECT_TRUE(end.ok()) << end.status();
      steps_.push_back({.flight = {.end = *std::move(end)}});
    }
  }

  void Launch(Step& step, float number, size_t num_rows = kRows) {
    ASSERT_TRUE(rows_->MakeRoom().ok());
    step.logits.assign(kNumLogits, number);
    gpu_->Upload(memory_->data(), step.logits.data(),
                 kNumLogits * sizeof(float));
    ASSERT_TRUE(step.flight.end.Record().ok());
    rows_->Keep(step.flight, num_rows);
  }
  std::vector<float> Read(Step& step, size_t num_rows = kRows) {
    EXPECT_TRUE(step.flight.end.Await().ok());
    std::vector<float> values(num_rows * kRowSize);
    const auto fetch = [&](const float* logits) {
      gpu_->Fetch(values.data(), logits, values.size() * sizeof(float));
      return StatusOfDevice(gpu_->AwaitFetches());
    };
    EXPECT_TRUE(rows_->Read(step.flight, fetch).ok());
    rows_->Forget(step.flight);
    return values;
  }

  const std::shared_ptr<Gpu> gpu_ = GpuUnderTest();
  DeviceCounters counters_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<RowsInFlight> rows_;
  std::vector<Step> steps_;
};

TEST_F(RowsInFlightTest, AreReadWhereTheyWereLeftOrAside) {
  Launch(steps_[0], 1);
  EXPECT_THAT(Read(steps_[0]), Each(1.0f));
  Launch(steps_[1], 2);
  Launch(steps_[0], 3, /*num_rows=*/2);
  EXPECT_THAT(Read(steps_[1]), Each(2.0f));
  Launch(steps_[1], 4);
  EXPECT_EQ(gpu_->Finish(), "");  // the device may be ahead
  EXPECT_THAT(Read(steps_[0], /*num_rows=*/2), Each(3.0f));
  EXPECT_THAT(Read(steps_[1]), Each(4.0f));
}

TEST_F(RowsInFlightTest, AreCopiedAsideOnlyWhereSomebodyMayWantThem) {
  Launch(steps_[0], 1, /*num_rows=*/0);
  Launch(steps_[1], 2);
  rows_->Forget(steps_[1].flight);
  Launch(steps_[0], 3);
  // A third one would find no room aside, had the first two been copied.
  Launch(steps_[1], 4);
  EXPECT_THAT(Read(steps_[0]), Each(3.0f));
  EXPECT_THAT(Read(steps_[1]), Each(4.0f));
}

TEST_F(RowsInFlightTest, AreTheStepsOwnWhateverTheThreadsDo) {
  Launch(steps_[0], 0);
  for (int i = 1; i <= 2000; ++i) {
    Step& next = steps_[i % kStepsInFlight];
    Step& last = steps_[(i + 1) % kStepsInFlight];
    std::jthread launches([&] {
      Launch(next, static_cast<float>(i));
      EXPECT_EQ(gpu_->Finish(), "");  // as far as it may have come meanwhile
    });
    EXPECT_THAT(Read(last), Each(static_cast<float>(i - 1)));
  }
}

}  // namespace
}  // namespace outrider
