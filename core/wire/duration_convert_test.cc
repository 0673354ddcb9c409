// SPDX-License-Identifier: Apache-2.0
#include "core/wire/duration_convert.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(DurationConvertTest, SecondsComeBackToTheNanosecond) {
  for (const double seconds : {0.0, 1e-9, 0.25, 3.5, -0.75, 1e6}) {
    google::protobuf::Duration duration;
    SetDuration(seconds, &duration);
    EXPECT_DOUBLE_EQ(ToSeconds(duration), seconds);
  }
}

TEST(DurationConvertTest, WhatAPeerSaysStaysInRange) {
  google::protobuf::Duration duration;
  duration.set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ToSeconds(duration), 1e9);
  duration.set_seconds(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ToSeconds(duration), -1e9);
}

}  // namespace
}  // namespace outrider
