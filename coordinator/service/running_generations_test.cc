// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/running_generations.h"

#include <thread>

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

TEST(RunningGenerationsTest, OneTooManyComesLater) {
  RunningGenerations running(/*most=*/1);
  const auto first = std::make_shared<Cancellation>();
  const auto second = std::make_shared<Cancellation>();
  EXPECT_THAT(running.Enter(first), IsOk());
  EXPECT_THAT(
      running.Enter(second),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1 sessions")));
  running.Leave(first);
  EXPECT_THAT(running.Enter(second), IsOk());
}

TEST(RunningGenerationsTest, DrainingEndsWithTheLastAndLetsNoneIn) {
  RunningGenerations running(/*most=*/2);
  const auto generation = std::make_shared<Cancellation>();
  EXPECT_THAT(running.Enter(generation), IsOk());
  std::jthread leaves([&] { running.Leave(generation); });
  EXPECT_TRUE(running.Drain(minutes(1), minutes(1)));
  EXPECT_FALSE(generation->cancelled());
  EXPECT_THAT(running.Enter(generation),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(RunningGenerationsTest, WhatTakesTooLongIsCancelledAndThenLeaves) {
  RunningGenerations running(/*most=*/1);
  const auto generation = std::make_shared<Cancellation>();
  EXPECT_THAT(running.Enter(generation), IsOk());
  std::jthread obeys([&] {
    while (!generation->cancelled()) std::this_thread::yield();
    running.Leave(generation);
  });
  EXPECT_TRUE(running.Drain(milliseconds(0), minutes(1)));
}

TEST(RunningGenerationsTest, WhatDoesNotEvenHeedItsCancellationIsNotAwaited) {
  RunningGenerations running(/*most=*/1);
  const auto generation = std::make_shared<Cancellation>();
  EXPECT_THAT(running.Enter(generation), IsOk());
  EXPECT_FALSE(running.Drain(milliseconds(0), milliseconds(10)));
  EXPECT_TRUE(generation->cancelled());
}

}  // namespace
}  // namespace outrider
