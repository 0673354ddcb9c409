// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/choose_level.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

using ::testing::AnyOfArray;
using ::testing::HasSubstr;

TEST(ChooseLevelTest, TheHighestLevelStandsUnlessALowerOneIsClearlyFaster) {
  EXPECT_EQ(PreferredLevel({{Level::kAvx2, 0.9}, {Level::kAvx512, 1.0}}),
            Level::kAvx512);
  EXPECT_EQ(PreferredLevel({{Level::kAvx2, 0.8}, {Level::kAvx512, 1.0}}),
            Level::kAvx2);
  EXPECT_EQ(PreferredLevel({{Level::kAvx2, 0.8},
                            {Level::kAvx512, 0.7},
                            {Level::kAvx512Bf16, 1.0}}),
            Level::kAvx512);
  EXPECT_EQ(PreferredLevel({{Level::kPortable, 5.0}}), Level::kPortable);
}

TEST(ChooseLevelTest, TheMeasuredLevelIsOneOfThisCpu) {
  EXPECT_THAT(SupportedLevels(), ::testing::Contains(ChooseLevel()));
}

TEST(LevelByNameTest, EveryLevelOfThisCpuHasItsName) {
  for (const Level level : SupportedLevels()) {
    const auto found = LevelByName(LevelName(level));
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, level);
  }
  const auto measured = LevelByName("auto");
  ASSERT_TRUE(measured.ok());
  EXPECT_THAT(*measured, AnyOfArray(SupportedLevels()));
}

TEST(LevelByNameTest, AnUnknownNameIsRefusedWithTheNamesThatThisCpuHas) {
  const absl::Status status = LevelByName("sse9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kernels \"sse9\": this CPU has auto, portable"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(LevelName(BestLevel())));
}

}  // namespace
}  // namespace outrider::kernels
