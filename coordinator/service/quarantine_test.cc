// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/quarantine.h"

#include <chrono>
#include <string>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::seconds;

class QuarantineTest : public ::testing::Test {
 protected:
  const Quarantine::Clock::time_point now_ = Quarantine::Clock::now();
  const TokenSeq deadly_ = {7, 300, 5};
  Quarantine quarantine_;
};

TEST_F(QuarantineTest, WhatIsSentAgainIsKnownByItsPrompt) {
  EXPECT_FALSE(quarantine_.Has(deadly_, now_));
  quarantine_.Add(deadly_, now_);
  EXPECT_TRUE(quarantine_.Has(deadly_, now_));
}

TEST_F(QuarantineTest, OtherPromptsAreServed) {
  quarantine_.Add(deadly_, now_);
  EXPECT_FALSE(quarantine_.Has({7, 300}, now_));
  EXPECT_FALSE(quarantine_.Has({7, 300, 5, 1}, now_));
  EXPECT_FALSE(quarantine_.Has({7, 5, 300}, now_));
}

TEST_F(QuarantineTest, AskingAddsNothing) {
  quarantine_.Add(deadly_, now_);
  EXPECT_TRUE(quarantine_.Has(deadly_, now_));
  EXPECT_FALSE(quarantine_.Has({1, 2}, now_));
}

TEST_F(QuarantineTest, ItEndsAfterItsPeriodWhoeverCameLater) {
  quarantine_.Add(deadly_, now_);
  quarantine_.Add({1, 2}, now_ + seconds(60));
  const auto end = now_ + Quarantine::kPeriod;
  EXPECT_TRUE(quarantine_.Has(deadly_, end - seconds(1)));
  EXPECT_FALSE(quarantine_.Has(deadly_, end));
  EXPECT_TRUE(quarantine_.Has({1, 2}, end));
  EXPECT_FALSE(quarantine_.Has({1, 2}, end + seconds(60)));
}

TEST_F(QuarantineTest, TheOldestLeavesForOneTooMany) {
  const auto add = [&](int i) { quarantine_.Add({i}, now_); };
  const int most = static_cast<int>(Quarantine::kMost);
  for (int i = 0; i < most; ++i) add(i);
  EXPECT_TRUE(quarantine_.Has({0}, now_));
  add(most);
  EXPECT_FALSE(quarantine_.Has({0}, now_));
  EXPECT_TRUE(quarantine_.Has({1}, now_));
  EXPECT_TRUE(quarantine_.Has({most}, now_));
}

}  // namespace
}  // namespace outrider
