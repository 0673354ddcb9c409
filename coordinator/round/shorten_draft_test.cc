// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/shorten_draft.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ShortenDraftTest, LeavesTheFirstWithAllThatBelongsToThem) {
  Draft draft = Draft::OneHot(/*start=*/7, {1, 2, 3});
  draft.confidences = {0.9F, 0.8F, 0.7F};
  Shorten(2, draft);
  EXPECT_THAT(draft.tokens, ElementsAre(1, 2));
  EXPECT_EQ(draft.distributions.size(), 2U);
  EXPECT_THAT(draft.confidences, ElementsAre(0.9F, 0.8F));
  Shorten(5, draft);
  EXPECT_EQ(draft.length(), 2);
}

TEST(ShortenDraftTest, WhereNothingIsSaidOfHowSureTheDrafterWasNothingIsAfter) {
  Draft draft = Draft::OneHot(/*start=*/7, {1, 2, 3});
  Shorten(1, draft);
  EXPECT_THAT(draft.confidences, IsEmpty());
}

}  // namespace
}  // namespace outrider
