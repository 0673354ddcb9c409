// SPDX-License-Identifier: Apache-2.0
#include "core/base/number_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace outrider {
namespace {

constexpr NumberRange kClosed = {.low = 0, .high = 10};
constexpr NumberRange kAboveLow = {.low = 0, .high = 1, .has_low = false};
constexpr NumberRange kBelowHigh = {.low = 0, .high = 1, .has_high = false};

TEST(NumberRangeTest, AnEndBelongsToItOrNot) {
  for (const NumberRange& range : {kClosed, kAboveLow, kBelowHigh}) {
    SCOPED_TRACE(InWords(range));
    EXPECT_EQ(range.Has(range.low), range.has_low);
    EXPECT_EQ(range.Has(range.high), range.has_high);
    EXPECT_TRUE(range.Has(std::nextafter(range.low, range.high)));
    EXPECT_TRUE(range.Has(std::nextafter(range.high, range.low)));
    EXPECT_FALSE(range.Has(std::nextafter(range.low, -1.0)));
    EXPECT_FALSE(range.Has(std::nextafter(range.high, 100.0)));
  }
}

TEST(NumberRangeTest, NothingThatIsNoNumberIsInIt) {
  constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
  for (const NumberRange& range : {kClosed, kAboveLow, kBelowHigh}) {
    EXPECT_FALSE(range.Has(kNotANumber));
    EXPECT_FALSE(range.Has(-kNotANumber));
  }
}

TEST(NumberRangeTest, ARefusalNamesTheOptionTheRangeAndTheValue) {
  EXPECT_TRUE(CheckNumber("heat", 10, kClosed).ok());
  EXPECT_EQ(CheckNumber("heat", 11, kClosed, ", where 0 is off").message(),
            "heat must be between 0 and 10, where 0 is off, not 11");
  EXPECT_EQ(CheckNumber("share", 0, kAboveLow).message(),
            "share must be above 0 and at most 1, not 0");
  EXPECT_EQ(CheckNumber("least", 1, kBelowHigh).message(),
            "least must be at least 0 and below 1, not 1");
}

}  // namespace
}  // namespace outrider
