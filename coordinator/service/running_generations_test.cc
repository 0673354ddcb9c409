// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/running_generations.h"

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/base/retry_delay.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using Kind = RunningGenerations::Kind;

TEST(RunningGenerationsTest, OneTooManyComesLater) {
  RunningGenerations running(/*most=*/1);
  const auto first = std::make_shared<Cancellation>();
  const auto second = std::make_shared<Cancellation>();
  EXPECT_THAT(running.Enter(first, Kind::kNew), IsOk());
  EXPECT_THAT(running.Enter(second, Kind::kNew),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("its limit is 1;")));
  running.Leave(first);
  EXPECT_THAT(running.Enter(second, Kind::kNew), IsOk());
}

// They would all be back at once.
TEST(RunningGenerationsTest, ThoseThatAreRefusedTogetherDoNotComeBackTogether) {
  RunningGenerations running(/*most=*/1);
  EXPECT_THAT(running.Enter(std::make_shared<Cancellation>(), Kind::kNew),
              IsOk());
  std::set<milliseconds> delays;
  for (int i = 0; i < 20; ++i) {
    delays.insert(RetryDelayOf(running.Enter(std::make_shared<Cancellation>(),
                                             Kind::kNew))
                      .value());
  }
  EXPECT_GE(*delays.begin(), milliseconds(1000));
  EXPECT_LE(*delays.rbegin(), milliseconds(1500));
  EXPECT_GE(delays.size(), 5u);
}

// Any client can say that it resumes.
TEST(RunningGenerationsTest, StreamsThatAreResumedHaveAsManyPlacesBeside) {
  RunningGenerations running(/*most=*/2);
  std::vector<std::shared_ptr<Cancellation>> all;
  for (int i = 0; i < 5; ++i) all.push_back(std::make_shared<Cancellation>());
  EXPECT_THAT(running.Enter(all[0], Kind::kNew), IsOk());
  for (int i = 1; i < 4; ++i) {
    EXPECT_THAT(running.Enter(all[i], Kind::kResumed), IsOk());
  }
  EXPECT_THAT(running.Enter(all[4], Kind::kResumed),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("its limit is 4;")));
  // What is new comes when those beyond the limit have left.
  running.Leave(all[0]);
  running.Leave(all[1]);
  EXPECT_THAT(running.Enter(all[4], Kind::kNew),
              StatusIs(absl::StatusCode::kResourceExhausted));
  running.Leave(all[2]);
  EXPECT_THAT(running.Enter(all[4], Kind::kNew), IsOk());
}

TEST(RunningGenerationsTest, DrainingEndsWithTheLastAndLetsNoneIn) {
  RunningGenerations running(/*most=*/2);
  const auto generation = std::make_shared<Cancellation>();
  EXPECT_THAT(running.Enter(generation, Kind::kNew), IsOk());
  EXPECT_THAT(running.CheckOpen(), IsOk());
  std::jthread leaves([&] { running.Leave(generation); });
  EXPECT_TRUE(running.Drain(minutes(1), minutes(1)));
  EXPECT_FALSE(generation->cancelled());
  EXPECT_THAT(running.CheckOpen(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(running.Enter(generation, Kind::kNew),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(RunningGenerationsTest, WhatTakesTooLongIsCancelledAndThenLeaves) {
  RunningGenerations running(/*most=*/1);
  const auto generation = std::make_shared<Cancellation>();
  EXPECT_THAT(running.Enter(generation, Kind::kNew), IsOk());
  std::jthread obeys([&] {
    while (!generation->cancelled()) std::this_thread::yield();
    running.Leave(generation);
  });
  EXPECT_TRUE(running.Drain(milliseconds(0), minutes(1)));
}

TEST(RunningGenerationsTest, WhatDoesNotEvenHeedItsCancellationIsNotAwaited) {
  RunningGenerations running(/*most=*/1);
  const auto generation = std::make_shared<Cancellation>();
  EXPECT_THAT(running.Enter(generation, Kind::kNew), IsOk());
  EXPECT_FALSE(running.Drain(milliseconds(0), milliseconds(10)));
  EXPECT_TRUE(generation->cancelled());
}

}  // namespace
}  // namespace outrider
