// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/prompt.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/nodes/refusal_reasons.h"
#include "coordinator/nodes/session_errors.h"
#include "core/base/error_reason.h"
#include "core/base/status_macros.h"
#include "core/session/check_tokens.h"

namespace outrider {
namespace {

// `is_least`: there may be more of them.
absl::Status TooLong(size_t num_tokens, bool is_least,
                     const GenerationLimits& limits) {
  // Verifiers with more memory may be elsewhere, or back in a moment.
  if (num_tokens < static_cast<size_t>(limits.context_length)) {
    return OutgrownError(static_cast<int>(num_tokens), limits.longest_text);
  }
  const absl::Status status = WithErrorReason(
      absl::InvalidArgumentError(absl::StrCat(
          "the prompt has ", is_least ? "at least " : "", num_tokens,
          " tokens; the model's context of ", limits.context_length,
          " leaves no room to continue it")),
      kContextLengthExceededReason);
  return WithErrorMetadata(
      WithErrorMetadata(status, "context_length",
                        absl::StrCat(limits.context_length)),
      is_least ? "least_num_tokens" : "num_tokens", absl::StrCat(num_tokens));
}

// Refuses a text that can have no room, which is cheap, before it is tokenised,
// which is not.
absl::Status CheckBytes(absl::string_view text,
                        const GenerationLimits& limits) {
  const std::optional<size_t> most = limits.tokenizer->max_bytes_per_token();
  if (!most.has_value()) return absl::OkStatus();
  const size_t num_tokens = (text.size() + *most - 1) / *most;
  if (num_tokens < static_cast<size_t>(limits.longest_text)) {
    return absl::OkStatus();
  }
  return TooLong(num_tokens, /*is_least=*/true, limits);
}

}  // namespace

absl::StatusOr<std::vector<TokenId>> Tokenize(absl::string_view text,
                                              const GenerationLimits& limits) {
  if (limits.tokenizer == nullptr) {
    return absl::InvalidArgumentError(
        "this coordinator has no tokenizer (--tokenizer): send token ids");
  }
  OUTRIDER_RETURN_IF_ERROR(CheckBytes(text, limits));
  return limits.tokenizer->Encode(text);
}

absl::Status CheckPrompt(absl::Span<const TokenId> prompt,
                         const GenerationLimits& limits) {
  if (prompt.empty()) {
    return absl::InvalidArgumentError(
        "the prompt is empty: give at least one token to continue");
  }
  OUTRIDER_RETURN_IF_ERROR(CheckTokens(prompt, limits.vocab_size));
  if (prompt.size() >= static_cast<size_t>(limits.longest_text)) {
    return TooLong(prompt.size(), /*is_least=*/false, limits);
  }
  return absl::OkStatus();
}

void KeepTokens(absl::Span<const TokenId> prompt, v1::GenerateRequest& proto) {
  proto.mutable_tokens()->mutable_ids()->Assign(prompt.begin(), prompt.end());
}

}  // namespace outrider
