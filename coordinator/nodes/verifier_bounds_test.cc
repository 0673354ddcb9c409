// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/verifier_bounds.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

NodeKnowledge Ready(const NodeDescription& node) {
  return {.answer = node, .fitness = absl::OkStatus()};
}

TEST(VerifierBoundsTest, EachIsThatOfTheLargestOfItsModelThatIsReady) {
  const NodeKnowledge wide = Ready({.weights_hash = "A",
                                    .context_length = 8192,
                                    .max_draft_tokens = 4,
                                    .kv_cache_tokens = 50});
  const NodeKnowledge roomy = Ready({.weights_hash = "A",
                                     .context_length = 4096,
                                     .max_draft_tokens = 8,
                                     .kv_cache_tokens = 3000});
  const NodeKnowledge other = Ready(
      {.weights_hash = "B", .context_length = 100'000, .max_draft_tokens = 16});
  NodeKnowledge leaving = Ready(
      {.weights_hash = "A", .context_length = 9000, .max_draft_tokens = 32});
  leaving.fitness = absl::UnavailableError("drains");
  const VerifierBounds bounds =
      BoundsOf({&wide, &roomy, &other, &leaving}, *wide.answer, /*needs=*/{});
  EXPECT_EQ(bounds.context_length, 8192);
  EXPECT_EQ(bounds.longest_text, 3000);
  EXPECT_EQ(bounds.max_draft_tokens, 8);
  EXPECT_EQ(bounds.most_draft_tokens, 16);
}

TEST(VerifierBoundsTest, OnesThatLackWhatASessionNeedsCountForNothing) {
  const NodeKnowledge own = Ready({.context_length = 4096,
                                   .max_draft_tokens = 4,
                                   .rules = {RuleKind::kBlock}});
  const NodeKnowledge larger = Ready({.context_length = 8192,
                                      .max_draft_tokens = 8,
                                      .rules = {RuleKind::kRejection}});
  const auto bounds_for = [&](RuleKind rule) {
    return BoundsOf({&own, &larger}, *own.answer, {.rule = rule});
  };
  const VerifierBounds bounds = bounds_for(RuleKind::kBlock);
  EXPECT_EQ(bounds.context_length, 8192);
  EXPECT_EQ(bounds.longest_text, 4096);
  EXPECT_EQ(bounds.max_draft_tokens, 4);
  EXPECT_EQ(bounds.most_draft_tokens, 8);
  // That is what such a request is told, rather than that it is too long.
  EXPECT_EQ(bounds_for(RuleKind::kCoupled).longest_text, 8192);
}

}  // namespace
}  // namespace outrider
