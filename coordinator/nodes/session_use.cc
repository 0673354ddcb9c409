// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_use.h"

#include "absl/algorithm/container.h"

namespace outrider {

bool CanServe(const NodeDescription& node, const NodeDescription& own,
              const SessionUse& use) {
  return node.tokenizer_hash == own.tokenizer_hash &&
         node.vocab_size == own.vocab_size && node.eos_ids == own.eos_ids &&
         node.context_length >= use.max_length &&
         absl::c_linear_search(node.reply_formats, use.reply_format) &&
         absl::c_linear_search(node.rules, use.rule);
}

}  // namespace outrider
