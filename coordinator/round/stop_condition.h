// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_STOP_CONDITION_H_
#define OUTRIDER_COORDINATOR_ROUND_STOP_CONDITION_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/wire/finish_reason.h"

namespace outrider {

// Looks inside the block that a round committed: it may hold an end-of-sequence
// token, or the last token that is allowed, before its end. Decides token by
// token, as plain decoding would. Immutable.
class StopCondition {
 public:
  // `max_length` counts the prompt too; no `eos_ids`: none ends the text.
  StopCondition(std::vector<TokenId> eos_ids, int max_length)
      : eos_ids_(std::move(eos_ids)), max_length_(max_length) {}

  struct BlockEnd {
    int num_kept = 0;  // leading tokens of the block that belong to the output
    std::optional<FinishReason> reason = {};  // none: go on
  };
  // `length_before` is the number of tokens before the block.
  BlockEnd Find(absl::Span<const TokenId> block, int length_before) const;

 private:
  std::vector<TokenId> eos_ids_;
  int max_length_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_STOP_CONDITION_H_
