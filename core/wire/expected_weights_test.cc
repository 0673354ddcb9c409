// SPDX-License-Identifier: Apache-2.0
#include "core/wire/expected_weights.h"

#include <string>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ExpectedWeightsTest, AnyWeightsWillDoWhereNoneAreNamed) {
  EXPECT_THAT(CheckExpected({}, "5d0e"), IsOk());
  EXPECT_THAT(CheckExpected({}, ""), IsOk());
}

TEST(ExpectedWeightsTest, OneOfThoseNamedWillDo) {
  EXPECT_THAT(CheckExpected({"91fa", "5d0e"}, "5d0e"), IsOk());
}

TEST(ExpectedWeightsTest, OthersAndNoneAreRefusedInWords) {
  EXPECT_THAT(CheckExpected({"91fa", "5d0e"}, "77aa"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its weights are 77aa, but --expect-weights "
                                 "91fa or 5d0e")));
  EXPECT_THAT(CheckExpected({"91fa"}, ""),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its weights are none")));
}

TEST(ExpectedWeightsTest, AHashIsSixtyFourHexDigits) {
  EXPECT_THAT(WhyNoHash(std::string(64, 'a')), IsEmpty());
  for (const std::string& text :
       {std::string(), std::string(63, 'a'), std::string(64, 'A'),
        std::string(64, 'g'), std::string("demo-target")}) {
    EXPECT_THAT(WhyNoHash(text), Not(IsEmpty())) << text;
  }
}

}  // namespace
}  // namespace outrider
