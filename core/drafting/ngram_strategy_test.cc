// SPDX-License-Identifier: Apache-2.0
#include "core/drafting/ngram_strategy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Draft Propose(const TokenSeq& committed, int k,
              NgramStrategy::Options options = {}) {
  const NgramStrategy strategy(options);
  const DraftContext context = {.committed = committed, .max_draft_tokens = k};
  const auto drafting = strategy.Begin(context, committed.size());
  EXPECT_EQ(drafting->num_rows(), 0);
  const absl::StatusOr<bool> goes_on = drafting->Take({});
  EXPECT_TRUE(goes_on.ok());
  EXPECT_FALSE(*goes_on);
  return drafting->draft();
}

TEST(NgramStrategyTest, ProposesWhatFollowedTheSameEndBefore) {
  const Draft draft = Propose({1, 2, 3, 4, 9, 1, 2}, 2);
  EXPECT_EQ(draft.start, 7u);
  EXPECT_THAT(draft.tokens, ElementsAre(3, 4));
  for (int i = 0; i < draft.length(); ++i) {
    EXPECT_EQ(draft.distributions[i](draft.tokens[i]), 1.0);
    EXPECT_EQ(draft.distributions[i].support().size(), 1u);
  }
}

TEST(NgramStrategyTest, TheLongestMatchWinsAndAmongEqualsTheLatest) {
  EXPECT_THAT(Propose({7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2}, 1).tokens,
              ElementsAre(3));
  EXPECT_THAT(Propose({1, 2, 3, 1, 2, 4, 1, 2}, 1).tokens, ElementsAre(4));
}

TEST(NgramStrategyTest, ShorterMatchesThanTheMinimumAreNoEvidence) {
  EXPECT_THAT(Propose({2, 5, 9, 2}, 3).tokens, IsEmpty());
  EXPECT_THAT(Propose({2, 5, 9, 2}, 3, {.min_match = 1}).tokens,
              ElementsAre(5, 9, 2));
  EXPECT_THAT(Propose({2}, 3, {.min_match = 1}).tokens, IsEmpty());
}

TEST(NgramStrategyTest, ProposesNoMoreThanAskedForNorThanThereIs) {
  EXPECT_THAT(Propose({1, 2, 3, 1, 2}, 9).tokens, ElementsAre(3, 1, 2));
  EXPECT_THAT(Propose({1, 2, 3, 1, 2}, 1).tokens, ElementsAre(3));
  EXPECT_THAT(Propose({1, 2, 3, 1, 2}, 0).tokens, IsEmpty());
  // A match may overlap the end it is compared with.
  EXPECT_THAT(Propose({6, 6, 6, 6}, 4).tokens, ElementsAre(6));
}

}  // namespace
}  // namespace outrider
