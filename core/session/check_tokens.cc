// SPDX-License-Identifier: Apache-2.0
#include "core/session/check_tokens.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace outrider {

absl::Status CheckTokens(absl::Span<const TokenId> tokens, int vocab_size) {
  for (const TokenId token : tokens) {
    if (token < 0 || token >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("token id ", AsSent(token),
                       " is outside the vocabulary [0, ", vocab_size, ")"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDelta(const CacheDelta& delta, int vocab_size,
                        int context_length, size_t num_drafts) {
  if (delta.keep_length < 0 || delta.append_tokens.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a cache delta keeps 0 or more tokens and appends at least one: keep ",
        delta.keep_length, ", append ", delta.append_tokens.size()));
  }
  const size_t length = delta.length();
  if (length + num_drafts > static_cast<size_t>(context_length)) {
    const std::string drafts =
        num_drafts > 0 ? absl::StrCat(" and ", num_drafts, " that follow") : "";
    return absl::InvalidArgumentError(
        absl::StrCat("the session has ", length, " tokens", drafts,
                     ", the model's context ends at ", context_length));
  }
  return CheckTokens(delta.append_tokens, vocab_size);
}

absl::Status CheckPromptLength(int prompt_length, size_t length) {
  if (prompt_length >= 0 && static_cast<size_t>(prompt_length) <= length) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("prompt_length must be between 0 and the ", length,
                   " tokens of the session, not ", prompt_length));
}

}  // namespace outrider
