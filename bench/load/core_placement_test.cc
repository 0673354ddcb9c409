// SPDX-License-Identifier: Apache-2.0
#include "bench/load/core_placement.h"

#include <chrono>
#include <string>
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

TEST(CorePlacementTest, OthersShareTheDraftersWhereNoneAreLeft) {
  const auto placement = PlaceOnCores({2, 3, 7, 9}, /*num_threads=*/2);
  ASSERT_THAT(placement, IsOk());
  EXPECT_EQ(ToString(*placement), "verifier 7 9, drafter 2 3, all else 2 3");
}

TEST(CorePlacementTest, ANodeWithFewerCoresThanThreadsIsRefused) {
  EXPECT_THAT(PlaceOnCores({0, 1, 2, 3}, /*num_threads=*/3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("its 3 threads, and this process may use 4: "
                                 "pass a lower --threads")));
  EXPECT_THAT(PlaceOnCores({0, 1}, /*num_threads=*/0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("needs --threads")));
}

// What a program that runs there says of itself.
std::string CoresOfAProgram(const Cores& cores) {
  const auto program = ChildProcess::Start(
      {"/bin/grep", "Cpus_allowed_list", "/proc/self/status"}, cores);
  EXPECT_THAT(program, IsOk());
  return *(*program)->ReadAll(std::chrono::seconds(60));
}

TEST(CorePlacementTest, AThreadStaysThereAndAProgramThatItStarts) {
  std::thread([] {
    const auto cores = CoresOfThisThread();
    ASSERT_THAT(cores, IsOk());
    const std::string on_last =
        absl::StrCat("Cpus_allowed_list:\t", cores->back(), "\n");
    EXPECT_EQ(CoresOfAProgram({cores->back()}), on_last);
    ASSERT_THAT(KeepThisThreadOn({cores->back()}), IsOk());
    EXPECT_THAT(*CoresOfThisThread(), ElementsAre(cores->back()));
    EXPECT_EQ(CoresOfAProgram({}), on_last);
  }).join();
}

TEST(CorePlacementTest, AProgramThatMayNotRunThereSaysSo) {
  const auto program =
      ChildProcess::Start({"/bin/true"}, /*cores=*/{CPU_SETSIZE - 1});
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT((*program)->ReadAll(std::chrono::seconds(60)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("may not run on the cores")));
}

TEST(CorePlacementTest, CoresThatAreNotThereAreRefused) {
  std::thread([] {
    EXPECT_THAT(KeepThisThreadOn({}), StatusIs(absl::StatusCode::kUnavailable));
    auto cores = CoresOfThisThread();
    ASSERT_THAT(cores, IsOk());
    cores->push_back(CPU_SETSIZE - 1);
    EXPECT_THAT(KeepThisThreadOn(*cores),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("may use")));
  }).join();
}

}  // namespace
}  // namespace outrider::bench
