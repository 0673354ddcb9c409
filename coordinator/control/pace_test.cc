// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/pace.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

// Two sets of 16 rounds that vary by 0.4 and are 0.35 apart: a third of the
// lesser, and 2.5 standard errors.
TEST(PaceTest, WhatIsApartDependsOnShareAndErrors) {
  Pace fast;
  Pace slow;
  for (int i = 0; i < 16; ++i) {
    const double off = i % 2 == 0 ? 0.4 : -0.4;
    fast.Add(1 + off);
    slow.Add(1.35 + off);
  }
  const auto are_apart = [&](const Pace::Margin& margin, int num_alike = 1) {
    return Pace::AreApart(fast, slow, margin, num_alike);
  };
  EXPECT_TRUE(are_apart({.share = 0.1, .num_errors = 2}));
  EXPECT_FALSE(are_apart({.share = 0.1, .num_errors = 3}));
  EXPECT_FALSE(are_apart({.share = 0.4, .num_errors = 2}));
  EXPECT_FALSE(are_apart({.share = 0.1, .num_errors = 2}, /*num_alike=*/4));
  EXPECT_FALSE(Pace::AreApart({}, slow, {}, 1));
}

}  // namespace
}  // namespace outrider
