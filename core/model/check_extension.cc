// SPDX-License-Identifier: Apache-2.0
#include "core/model/check_extension.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace outrider {

absl::Status CheckExtension(const Extension& extension,
                            const ModelInfo& model) {
  const auto num_tokens = static_cast<int64_t>(extension.tokens.size());
  if (num_tokens < 1 || extension.num_rows < 0 ||
      extension.num_rows > num_tokens || extension.cached_length < 0 ||
      extension.max_drawn < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(extension.num_rows, " rows of ", num_tokens,
                     " tokens after ", extension.cached_length));
  }
  const int64_t length =
      extension.cached_length + num_tokens + extension.max_drawn;
  if (length > model.context_length) {
    return absl::InvalidArgumentError(absl::StrCat(
        length, " tokens are beyond the context of ", model.context_length));
  }
  if (extension.blocks.size() <
      static_cast<size_t>(NumKvBlocks(static_cast<int>(length)))) {
    return absl::InvalidArgumentError(
        absl::StrCat(length, " tokens have no room in ",
                     extension.blocks.size(), " KV blocks"));
  }
  for (const TokenId token : extension.tokens) {
    if (token < 0 || token >= model.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token ", token, " is not in the vocabulary of ", model.vocab_size));
    }
  }
  return absl::OkStatus();
}

}  // namespace outrider
