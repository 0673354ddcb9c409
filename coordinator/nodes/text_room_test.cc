// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/text_room.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace outrider {
namespace {

const NodeDescription kRoomyNode = {.context_length = 1000,
                                    .max_draft_tokens = 4};

TEST(TextRoomTest, ATextEndsWithTheContextOrTheMemory) {
  NodeDescription node = kRoomyNode;
  EXPECT_EQ(RoomOf(node), 1000);  // an older node, which does not say
  node.kv_cache_tokens = 640;
  EXPECT_EQ(RoomOf(node), 640);
  node.kv_cache_tokens = int64_t{1} << 40;
  EXPECT_EQ(RoomOf(node), 1000);
}

TEST(TextRoomTest, DraftsEndWithWhatTheNodeTakesAndWithItsRoom) {
  EXPECT_EQ(MostDrafts(kRoomyNode, 10), 4);
  EXPECT_EQ(MostDrafts(kRoomyNode, 996), 4);
  EXPECT_EQ(MostDrafts(kRoomyNode, 998), 2);
  EXPECT_EQ(MostDrafts(kRoomyNode, 1000), 0);
  EXPECT_EQ(MostDrafts(kRoomyNode, 1001), 0);
}

TEST(TextRoomTest, WhatTheVerifierGoesOnWithNeedsAsMuchRoomAsDrafts) {
  VerifyCall call = {.header = {.delta = {.append_tokens = TokenSeq(998, 0)}}};
  for (const int num_after : {2, 3}) {
    call.draft_tokens = TokenSeq(num_after, 0);
    call.max_more_tokens = 0;
    EXPECT_EQ(TakesDrafts(kRoomyNode, call), num_after == 2);
    EXPECT_EQ(LengthOf(call), 998 + num_after);
    call.draft_tokens.clear();
    call.max_more_tokens = num_after;
    EXPECT_EQ(TakesDrafts(kRoomyNode, call), num_after == 2);
    EXPECT_EQ(LengthOf(call), 998 + num_after);
  }
}

}  // namespace
}  // namespace outrider
