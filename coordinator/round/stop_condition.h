// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_STOP_CONDITION_H_
#define OUTRIDER_COORDINATOR_ROUND_STOP_CONDITION_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/wire/finish_reason.h"

namespace outrider {

// Looks inside the block that a round committed: it may hold an end-of-sequence
// token, a stop token, or the last token that is allowed, before its end.
// Decides token by token, as plain decoding would. Immutable.
class StopCondition {
 public:
  struct Options {
    std::vector<TokenId> eos_ids = {};         // none: none ends the text
    std::vector<TokenId> stop_token_ids = {};  // likewise
    int max_length = 0;                        // the prompt counts, too
  };

  explicit StopCondition(Options options) : options_(std::move(options)) {}

  struct BlockEnd {
    int num_kept = 0;  // leading tokens of the block that belong to the output
    // None: go on. Where it is kEos or kStop, the last of them is the token
    // that says so, which has no text.
    std::optional<FinishReason> reason = {};
  };
  // `length_before` is the number of tokens before the block.
  BlockEnd Find(absl::Span<const TokenId> block, int length_before) const;

 private:
  Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_STOP_CONDITION_H_
