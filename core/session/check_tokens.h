// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_CHECK_TOKENS_H_
#define OUTRIDER_CORE_SESSION_CHECK_TOKENS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/session/cache_delta.h"

namespace outrider {

// INVALID_ARGUMENT names the first id outside [0, vocab_size).
absl::Status CheckTokens(absl::Span<const TokenId> tokens, int vocab_size);

// What a node asks of a delta before anything else: at least one token, all of
// them known, and no more than the context holds beside the drafts that follow.
absl::Status CheckDelta(const CacheDelta& delta, int vocab_size,
                        int context_length, size_t num_drafts = 0);

// INVALID_ARGUMENT unless the prompt is a part of the session's first `length`
// tokens.
absl::Status CheckPromptLength(int prompt_length, size_t length);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_CHECK_TOKENS_H_
