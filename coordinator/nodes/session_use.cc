// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_use.h"

#include "absl/algorithm/container.h"

namespace outrider {

bool Serves(const NodeDescription& node, const VerifierNeeds& needs) {
  return (!needs.rule.has_value() ||
          absl::c_linear_search(node.rules, *needs.rule)) &&
         (!needs.reply_format.has_value() ||
          absl::c_linear_search(node.reply_formats, *needs.reply_format));
}

bool CanServe(const NodeDescription& node, const NodeDescription& own,
              const SessionUse& use) {
  return node.tokenizer_hash == own.tokenizer_hash &&
         node.vocab_size == own.vocab_size &&
         Serves(node, {.rule = use.rule, .reply_format = use.reply_format});
}

}  // namespace outrider
