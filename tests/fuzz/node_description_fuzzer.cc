// SPDX-License-Identifier: Apache-2.0
// What anybody's node says of itself, at a coordinator: refused with words, or
// numbers that can be reckoned with.
#include <algorithm>

#include "coordinator/nodes/session_use.h"
#include "coordinator/nodes/text_room.h"
#include "core/wire/message_limits.h"
#include "core/wire/node_description.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {
namespace {

void CheckLimits(const NodeDescription& node) {
  const MessageLimits limits = LimitsOf(node);
  OUTRIDER_CHECK(limits.draft_request > 0 && limits.draft_response > 0);
  OUTRIDER_CHECK(limits.verify_request > 0 && limits.verify_response > 0);
}

void AsVerifier(const NodeDescription& node) {
  const absl::Status status = CheckVerifier(node);
  if (!status.ok()) {
    CheckRefusal(status);
    return;
  }
  const int room = RoomOf(node);
  OUTRIDER_CHECK(room > 0 && room <= node.context_length);
  for (const int text_length : {0, 1, room, node.context_length}) {
    const int most = MostDrafts(node, text_length);
    OUTRIDER_CHECK(most >= 0 && (most == 0 || most <= node.max_draft_tokens));
    OUTRIDER_CHECK(most == 0 || text_length + most <= room);
  }
  const SessionUse use = {};
  const bool has_rule =
      std::count(node.rules.begin(), node.rules.end(), use.rule) == 1;
  OUTRIDER_CHECK(CanServe(node, node, use) == has_rule);
}

void AsDrafter(const NodeDescription& node) {
  NodeDescription verifier = node;
  const absl::Status same = CheckPair(node, verifier);
  if (!same.ok()) CheckRefusal(same);
  verifier.tokenizer_hash += "x";
  CheckRefusal(CheckPair(node, verifier));
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;           // NOLINT: a program of one function
  using namespace outrider::testing;  // NOLINT
  v1::NodeDescription proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const NodeDescription node = FromProto(proto);
  // One that names rules of which we know none comes back with the default.
  OUTRIDER_CHECK(node.rules.empty() || FromProto(ToProto(node)) == node);
  CheckLimits(node);
  AsVerifier(node);
  AsDrafter(node);
  return 0;
}
