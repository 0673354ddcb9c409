// SPDX-License-Identifier: Apache-2.0
#include "bench/load/core_placement.h"

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "bench/load/child_process.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::bench {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CorePlacementTest, EachNodeHasItsOwnWhereThereAreEnough) {
  const auto placement = PlaceOnCores({0, 1, 4, 5, 6}, /*num_threads=*/2);
  ASSERT_THAT(placement, IsOk());
  EXPECT_THAT(placement->verifier, ElementsAre(5, 6));
  EXPECT_THAT(placement->drafter, ElementsAre(1, 4));
  EXPECT_THAT(placement->others, ElementsAre(0));
}

TEST(CorePlacementTest, WhatTheVerifierLeavesIsSharedWhereThereAreFew) {
  const auto placement = PlaceOnCores({2, 3, 7, 9}, /*num_threads=*/2);
  ASSERT_THAT(placement, IsOk());
  EXPECT_EQ(ToString(*placement), "verifier 7 9, drafter 2 3, all else 2 3");
}

TEST(CorePlacementTest, NobodyIsLeftWithoutACore) {
  EXPECT_THAT(PlaceOnCores({0, 1}, /*num_threads=*/2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("here are 2, and --threads is 2")));
  EXPECT_THAT(PlaceOnCores({0, 1}, /*num_threads=*/0),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CorePlacementTest, AThreadStaysThereAndAProgramThatItStarts) {
  std::thread([] {
    const Cores last = {CoresOfThisThread().back()};
    ASSERT_THAT(KeepThisThreadOn(last), IsOk());
    EXPECT_EQ(CoresOfThisThread(), last);
    const auto program = ChildProcess::Start(
        {"/bin/grep", "Cpus_allowed_list", "/proc/self/status"});
    ASSERT_THAT(program, IsOk());
    const auto said = (*program)->ReadAll(std::chrono::seconds(60));
    ASSERT_THAT(said, IsOk());
    EXPECT_EQ(*said, absl::StrCat("Cpus_allowed_list:\t", last[0], "\n"));
  }).join();
}

TEST(CorePlacementTest, NoCoreAtAllIsRefused) {
  EXPECT_THAT(KeepThisThreadOn({}), StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace outrider::bench
