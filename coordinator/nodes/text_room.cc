// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/text_room.h"

#include <algorithm>
#include <cstdint>

namespace outrider {

int RoomOf(const NodeDescription& node) {
  // An older node does not say how much it has.
  if (node.kv_cache_tokens <= 0) return node.context_length;
  return static_cast<int>(
      std::min<int64_t>(node.kv_cache_tokens, node.context_length));
}

int TextLengthOf(const VerifyCall& call) {
  return static_cast<int>(call.header.delta.length());
}

int NumAfterText(const VerifyCall& call) {
  return static_cast<int>(call.draft_tokens.size()) + call.max_more_tokens;
}

int LengthOf(const VerifyCall& call) {
  return TextLengthOf(call) + NumAfterText(call);
}

int MostDrafts(const NodeDescription& node, int text_length) {
  return std::max(0,
                  std::min(node.max_draft_tokens, RoomOf(node) - text_length));
}

bool TakesDrafts(const NodeDescription& node, const VerifyCall& call) {
  return NumAfterText(call) <= MostDrafts(node, TextLengthOf(call));
}

}  // namespace outrider
