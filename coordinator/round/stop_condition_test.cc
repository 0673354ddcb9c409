// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/stop_condition.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr TokenId kEos = 9;

TEST(StopConditionTest, GoesOnWhereNothingEnds) {
  const StopCondition stop({.eos_ids = {kEos}, .max_length = 100});
  const auto end = stop.Find({1, 2, 3}, /*length_before=*/5);
  EXPECT_EQ(end.num_kept, 3);
  EXPECT_EQ(end.reason, std::nullopt);
}

TEST(StopConditionTest, AnEndTokenInsideABlockIsTheLastThatIsKept) {
  const StopCondition stop({.eos_ids = {kEos, 8}, .max_length = 100});
  EXPECT_EQ(stop.Find({1, kEos, 3}, 5).num_kept, 2);
  EXPECT_EQ(stop.Find({1, kEos, 3}, 5).reason, FinishReason::kEos);
  EXPECT_EQ(stop.Find({8, kEos}, 5).num_kept, 1);
}

TEST(StopConditionTest, AnEndTokenInTheLastAllowedPlaceIsAnEndNotACut) {
  const StopCondition stop({.eos_ids = {kEos}, .max_length = 7});
  EXPECT_EQ(stop.Find({1, kEos}, 5).reason, FinishReason::kEos);
  EXPECT_EQ(stop.Find({1, 2, kEos}, 5).reason, FinishReason::kLength);
}

TEST(StopConditionTest, AStopTokenEndsABlockAsAnEndTokenDoes) {
  const StopCondition stop(
      {.eos_ids = {kEos}, .stop_token_ids = {7, 8}, .max_length = 8});
  EXPECT_EQ(stop.Find({1, 8, 7}, 5).num_kept, 2);
  EXPECT_EQ(stop.Find({1, 8, 7}, 5).reason, FinishReason::kStop);
  EXPECT_EQ(stop.Find({kEos, 8}, 5).reason, FinishReason::kEos);
  EXPECT_EQ(stop.Find({1, 2, 8}, 5).reason, FinishReason::kStop);
  EXPECT_EQ(stop.Find({1, 2, 3, 8}, 5).reason, FinishReason::kLength);
}

TEST(StopConditionTest, AnEndTokenThatIsAStopTokenIsWhicheverStillHolds) {
  EXPECT_EQ(StopCondition(
                {.eos_ids = {kEos}, .stop_token_ids = {kEos}, .max_length = 9})
                .Find({kEos}, 5)
                .reason,
            FinishReason::kEos);
  EXPECT_EQ(StopCondition({.stop_token_ids = {kEos}, .max_length = 9})
                .Find({kEos}, 5)
                .reason,
            FinishReason::kStop);
}

TEST(StopConditionTest, NoEndTokensMeanThatTheBudgetAloneEnds) {
  const StopCondition stop({.max_length = 6});
  EXPECT_EQ(stop.Find({kEos, kEos}, 4).reason, FinishReason::kLength);
  EXPECT_EQ(stop.Find({kEos}, 4).reason, std::nullopt);
}

// However the text falls into blocks, it ends where plain decoding ends it.
TEST(StopConditionTest, BlocksEndWhereSingleTokensWould) {
  const TokenSeq text = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int eos_place = 0; eos_place <= 8; ++eos_place) {
    for (int max_length = 4; max_length <= 11; ++max_length) {
      TokenSeq tokens = text;
      if (eos_place < 8) tokens[eos_place] = kEos;
      const StopCondition stop({.eos_ids = {kEos}, .max_length = max_length});
      const int expected = std::min({eos_place + 1, max_length - 3, 8});
      for (int block_size = 1; block_size <= 8; ++block_size) {
        SCOPED_TRACE(absl::StrCat("eos ", eos_place, ", max ", max_length,
                                  ", blocks of ", block_size));
        int kept = 0;
        std::optional<FinishReason> reason;
        while (kept < 8 && !reason.has_value()) {
          const auto end = stop.Find(
              absl::MakeConstSpan(tokens).subspan(kept, block_size), 3 + kept);
          kept += end.num_kept;
          reason = end.reason;
        }
        EXPECT_EQ(kept, expected);
        EXPECT_EQ(reason == FinishReason::kEos, eos_place == expected - 1);
      }
    }
  }
}

}  // namespace
}  // namespace outrider
