// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/quarantine.h"

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
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

TEST_F(QuarantineTest, WhatIsSentAgainIsKnownByItsPromptAndByItsName) {
  EXPECT_FALSE(quarantine_.Has(deadly_, "one", now_));
  quarantine_.Add(deadly_, "one", now_);
  EXPECT_TRUE(quarantine_.Has(deadly_, "another", now_));
  EXPECT_TRUE(quarantine_.Has({1, 2}, "one", now_));
}

TEST_F(QuarantineTest, OtherPromptsAreServed) {
  quarantine_.Add(deadly_, "one", now_);
  EXPECT_FALSE(quarantine_.Has({7, 300}, "another", now_));
  EXPECT_FALSE(quarantine_.Has({7, 300, 5, 1}, "another", now_));
  EXPECT_FALSE(quarantine_.Has({7, 5, 300}, "another", now_));
}

TEST_F(QuarantineTest, AskingAddsNothing) {
  quarantine_.Add(deadly_, "one", now_);
  EXPECT_TRUE(quarantine_.Has(deadly_, "another", now_));
  EXPECT_FALSE(quarantine_.Has({1, 2}, "another", now_));
}

TEST_F(QuarantineTest, ItEndsAfterItsPeriodWhoeverCameLater) {
  quarantine_.Add(deadly_, "one", now_);
  quarantine_.Add({1, 2}, "two", now_ + seconds(60));
  const auto end = now_ + Quarantine::kPeriod;
  EXPECT_TRUE(quarantine_.Has(deadly_, "another", end - seconds(1)));
  EXPECT_FALSE(quarantine_.Has(deadly_, "another", end));
  EXPECT_TRUE(quarantine_.Has({1, 2}, "another", end));
  EXPECT_FALSE(quarantine_.Has({1, 2}, "another", end + seconds(60)));
}

TEST_F(QuarantineTest, TheOldestLeavesForOneTooMany) {
  const auto add = [&](int i) {
    quarantine_.Add({i}, absl::StrCat("request ", i), now_);
  };
  const int most = static_cast<int>(Quarantine::kMost);
  for (int i = 0; i < most; ++i) add(i);
  EXPECT_TRUE(quarantine_.Has({0}, "another", now_));
  add(most);
  EXPECT_FALSE(quarantine_.Has({0}, "another", now_));
  EXPECT_TRUE(quarantine_.Has({1}, "another", now_));
  EXPECT_TRUE(quarantine_.Has({most}, "another", now_));
}

}  // namespace
}  // namespace outrider
