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
  const SessionUse use = {.max_length = 1000,
                          .max_draft_tokens = 4,
                          .reply_format = ReplyFormat::kTokens,
                          .rule = RuleKind::kBlock};
  EXPECT_TRUE(CanServe(kNode, kNode, use));
  NodeDescription fewer_drafts = kNode;
  fewer_drafts.max_draft_tokens = 3;
  EXPECT_TRUE(CanServe(fewer_drafts, kNode, use));
  const std::function<void(NodeDescription&)> lacks[] = {
      [](NodeDescription& node) { node.tokenizer_hash = "other"; },
      [](NodeDescription& node) { node.vocab_size = 11; },
      [](NodeDescription& node) { node.eos_ids = {1}; },
      [](NodeDescription& node) { node.context_length = 999; },
      [](NodeDescription& node) { node.reply_formats = {ReplyFormat::kFull}; },
      [](NodeDescription& node) { node.rules = {RuleKind::kRejection}; },
  };
  for (const auto& lack : lacks) {
    NodeDescription node = kNode;
    lack(node);
    EXPECT_FALSE(CanServe(node, kNode, use));
  }
}

TEST(SessionUseTest, ATextEndsWithTheContextOrTheMemory) {
  NodeDescription node = kNode;
  EXPECT_EQ(RoomOf(node), 1000);  // an older node, which does not say
  node.kv_cache_tokens = 640;
  EXPECT_EQ(RoomOf(node), 640);
  node.kv_cache_tokens = int64_t{1} << 40;
  EXPECT_EQ(RoomOf(node), 1000);
}

TEST(SessionUseTest, DraftsEndWithWhatTheNodeTakesAndWithItsRoom) {
  EXPECT_EQ(MostDrafts(kNode, 10), 4);
  EXPECT_EQ(MostDrafts(kNode, 996), 4);
  EXPECT_EQ(MostDrafts(kNode, 998), 2);
  EXPECT_EQ(MostDrafts(kNode, 1000), 0);
  EXPECT_EQ(MostDrafts(kNode, 1001), 0);
}

TEST(SessionUseTest, WhatTheVerifierGoesOnWithNeedsAsMuchRoomAsDrafts) {
  VerifyCall call = {.header = {.delta = {.append_tokens = TokenSeq(998, 0)}}};
  for (const int num_after : {2, 3}) {
    call.draft_tokens = TokenSeq(num_after, 0);
    call.max_more_tokens = 0;
    EXPECT_EQ(TakesDrafts(kNode, call), num_after == 2);
    EXPECT_EQ(LengthOf(call), 998 + num_after);
    call.draft_tokens.clear();
    call.max_more_tokens = num_after;
    EXPECT_EQ(TakesDrafts(kNode, call), num_after == 2);
    EXPECT_EQ(LengthOf(call), 998 + num_after);
  }
}

TEST(SessionUseTest, OnlyWhatIsSaidToBeOutgrownIs) {
  EXPECT_TRUE(IsOutgrown(OutgrownError(100, 64)));
  EXPECT_FALSE(IsOutgrown(absl::FailedPreconditionError("")));
  EXPECT_FALSE(IsOutgrown(absl::OkStatus()));
}

}  // namespace
}  // namespace outrider
