// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/rule_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrider {
namespace {

using ::testing::ElementsAre;

TEST(RuleNamesTest, EachRuleIsFoundByItsName) {
  for (const RuleKind rule :
       {RuleKind::kRejection, RuleKind::kBlock, RuleKind::kCoupled}) {
    EXPECT_EQ(RuleOfName(NameOf(rule)), rule);
  }
  EXPECT_EQ(RuleOfName("typical"), std::nullopt);
}

TEST(RuleNamesTest, AFlagTakesGreedyTooWhichIsRejectionAtTemperature0) {
  EXPECT_THAT(RuleFlagNames(),
              ElementsAre("greedy", "rejection", "block", "coupled"));
  EXPECT_EQ(RuleOfName("greedy"), RuleKind::kRejection);
}

}  // namespace
}  // namespace outrider
