// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_use.h"

#include <functional>

#include "gtest/gtest.h"

namespace outrider {
namespace {

const NodeDescription kNode = {.tokenizer_hash = "t",
                               .vocab_size = 10,
                               .eos_ids = {0},
                               .context_length = 1000,
                               .max_draft_tokens = 4,
                               .reply_formats = {ReplyFormat::kTokens},
                               .rules = {RuleKind::kBlock}};

TEST(SessionUseTest, AnotherNodeHasToServeWhatTheSessionUses) {
  const SessionUse use = {.max_draft_tokens = 4,
                          .reply_format = ReplyFormat::kTokens,
                          .rule = RuleKind::kBlock};
  EXPECT_TRUE(CanServe(kNode, kNode, use));
  NodeDescription fewer_drafts = kNode;
  fewer_drafts.max_draft_tokens = 3;
  EXPECT_TRUE(CanServe(fewer_drafts, kNode, use));
  NodeDescription smaller = kNode;  // its text may never become so long
  smaller.context_length = 999;
  EXPECT_TRUE(CanServe(/*node=*/smaller, /*own=*/kNode, use));
  NodeDescription other_ends = kNode;  // of a build that reads more files
  other_ends.eos_ids = {0, 1};
  EXPECT_TRUE(CanServe(other_ends, kNode, use));
  EXPECT_TRUE(CanServe(kNode, other_ends, use));
  const std::function<void(NodeDescription&)> lacks[] = {
      [](NodeDescription& node) { node.tokenizer_hash = "other"; },
      [](NodeDescription& node) { node.vocab_size = 11; },
      [](NodeDescription& node) { node.reply_formats = {ReplyFormat::kFull}; },
      [](NodeDescription& node) { node.rules = {RuleKind::kRejection}; },
  };
  for (const auto& lack : lacks) {
    NodeDescription node = kNode;
    lack(node);
    EXPECT_FALSE(CanServe(node, kNode, use));
  }
}

}  // namespace
}  // namespace outrider
