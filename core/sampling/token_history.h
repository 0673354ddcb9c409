// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_TOKEN_HISTORY_H_
#define OUTRIDER_CORE_SAMPLING_TOKEN_HISTORY_H_

#include "absl/types/span.h"
#include "core/base/token.h"

namespace outrider {

// All tokens before the place that a row of logits is for, as penalties see
// them. Each row of a block has its own: the drafts before it count as if they
// had been committed. Views; the tokens belong to someone else.
struct TokenHistory {
  absl::Span<const TokenId> committed = {};  // the prompt first
  absl::Span<const TokenId> drafts = {};     // of this block, before the row
  int prompt_length = 0;  // of `committed`; what follows was generated
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_TOKEN_HISTORY_H_
