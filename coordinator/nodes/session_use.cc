// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_use.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coordinator/nodes/refusal_reasons.h"
#include "core/base/error_reason.h"

namespace outrider {
bool CanServe(const NodeDescription& node, const NodeDescription& own,
              const SessionUse& use) {
  return node.tokenizer_hash == own.tokenizer_hash &&
         node.vocab_size == own.vocab_size && node.eos_ids == own.eos_ids &&
         node.context_length >= use.max_length &&
         absl::c_linear_search(node.reply_formats, use.reply_format) &&
         absl::c_linear_search(node.rules, use.rule);
}

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

absl::Status OutgrownError(int length, int room) {
  const absl::Status status = WithErrorReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the text takes a cache of ", length,
          " tokens and those that continue it, and the verifiers that are "
          "ready have memory for ",
          room, "; send less, or try where they have more")),
      kOutOfKvMemoryReason);
  return WithErrorMetadata(status, "num_tokens", absl::StrCat(length));
}

bool IsOutgrown(const absl::Status& status) {
  return ErrorReasonOf(status) == kOutOfKvMemoryReason;
}

}  // namespace outrider
