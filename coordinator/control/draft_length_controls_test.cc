// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/draft_length_controls.h"

#include <set>

#include "gtest/gtest.h"

namespace outrider {
namespace {

class DraftLengthControlsTest : public ::testing::Test {
 protected:
  DraftLengthControl* Of(RuleKind rule, double temperature,
                         const DraftOptions& drafting = {},
                         Schedule schedule = Schedule::kSequential) {
    return &controls_.Of({.drafter = drafter_,
                          .rule = rule,
                          .sampling = {.temperature = temperature},
                          .drafting = drafting,
                          .schedule = schedule});
  }

  ModelIdentity drafter_ = {.weights_hash = "5d0e", .dtype = "bfloat16"};
  DraftLengthControls controls_;
};

// It is at the same address, and says nothing of the one before.
TEST_F(DraftLengthControlsTest, AnotherModelHasItsOwn) {
  DraftLengthControl* const first = Of(RuleKind::kRejection, 0);
  drafter_.dtype = "float32";
  EXPECT_NE(Of(RuleKind::kRejection, 0), first);
  drafter_ = {.weights_hash = "91fa", .dtype = "bfloat16"};
  EXPECT_NE(Of(RuleKind::kRejection, 0), first);
  drafter_.weights_hash = "5d0e";
  EXPECT_EQ(Of(RuleKind::kRejection, 0), first);
}

TEST_F(DraftLengthControlsTest, EachWayToDrawAndJudgeDraftsHasItsOwn) {
  EXPECT_EQ(Of(RuleKind::kBlock, 0), Of(RuleKind::kCoupled, 0));
  EXPECT_NE(Of(RuleKind::kBlock, 0), Of(RuleKind::kBlock, 0.1));
  EXPECT_NE(Of(RuleKind::kBlock, 1), Of(RuleKind::kRejection, 1));
  EXPECT_NE(Of(RuleKind::kBlock, 0.7), Of(RuleKind::kBlock, 1));
  EXPECT_EQ(Of(RuleKind::kBlock, 5), Of(RuleKind::kBlock, 10));
}

// A request that ends its drafts early gives others nothing to learn from.
TEST_F(DraftLengthControlsTest, DraftsThatEndEarlyHaveTheirOwn) {
  const DraftOptions ends_early = {.min_draft_probability = 0.4};
  EXPECT_NE(Of(RuleKind::kRejection, 0),
            Of(RuleKind::kRejection, 0, ends_early));
  EXPECT_NE(Of(RuleKind::kRejection, 1),
            Of(RuleKind::kRejection, 1, ends_early));
  EXPECT_NE(Of(RuleKind::kRejection, 1, {.min_draft_probability = 0.05}),
            Of(RuleKind::kRejection, 1));
}

TEST_F(DraftLengthControlsTest, RowsThatAreCutOtherwiseHaveTheirOwn) {
  EXPECT_NE(Of(RuleKind::kRejection, 1, {.support_size = 1}),
            Of(RuleKind::kRejection, 1, {.support_size = 32}));
  EXPECT_NE(Of(RuleKind::kRejection, 1, {.support_mass = 0.5}),
            Of(RuleKind::kRejection, 1, {.support_mass = 1}));
  // The first choice is in every cut.
  EXPECT_EQ(Of(RuleKind::kRejection, 0, {.support_size = 1}),
            Of(RuleKind::kRejection, 0, {.support_size = 32}));
}

// A round whose drafts are made ahead costs something else.
TEST_F(DraftLengthControlsTest, EachScheduleHasItsOwn) {
  std::set<DraftLengthControl*> distinct;
  for (const auto& [name, schedule] : ScheduleNames()) {
    distinct.insert(Of(RuleKind::kRejection, 0, {}, schedule));
  }
  EXPECT_EQ(distinct.size(), ScheduleNames().size());
}

TEST_F(DraftLengthControlsTest, ThereIsNoEndOfWaysButOfControls) {
  std::set<DraftLengthControl*> distinct;
  for (int rule = 0; rule < 3; ++rule) {
    for (int quarter = 1; quarter <= 8; ++quarter) {
      for (int bits = 0; bits < 10; ++bits) {
        for (const auto& [name, schedule] : ScheduleNames()) {
          distinct.insert(Of(static_cast<RuleKind>(rule), 0.25 * quarter,
                             {.support_size = 1 << bits}, schedule));
        }
      }
    }
  }
  EXPECT_EQ(distinct.size(),
            DraftLengthControls::kMost + ScheduleNames().size());
}

}  // namespace
}  // namespace outrider
