// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/session_watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

using ::testing::IsNull;
using ::testing::NotNull;

// The verifier took one of two drafts in flight, and has said the other one.
TEST(SessionWatchTest, ADraftAheadFitsInTheRoundThatHasSettledItsCallAlone) {
  SessionWatch watch = {.text = {1, 2, 3}};
  watch.ahead = {{.text = {1, 2, 3}, .draft = {.tokens = {7}}},
                 {.text = {1, 2, 3, 4}, .draft = {.tokens = {8}}}};
  watch.Proposed();
  EXPECT_THAT(watch.Fitting(), NotNull());
  watch.text.push_back(4);
  EXPECT_THAT(watch.Fitting(), IsNull());
}

// A round without drafts settles nothing.
TEST(SessionWatchTest, ADraftAheadFitsAfterARoundThatHasAskedForNone) {
  SessionWatch watch = {.text = {1, 2, 3}};
  watch.ahead = {{.text = {1, 2, 3, 4}, .draft = {.tokens = {8}}}};
  watch.text.push_back(4);
  watch.Proposed();
  EXPECT_THAT(watch.Fitting(), NotNull());
}

}  // namespace
}  // namespace outrider::testing
