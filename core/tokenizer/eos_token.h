// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_EOS_TOKEN_H_
#define OUTRIDER_CORE_TOKENIZER_EOS_TOKEN_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/token.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// The id of DIR/tokenizer_config.json's eos_token. None where there is no such
// file, it names none, or `spec` does not have it, of which the log warns.
// INVALID_ARGUMENT where the file is damaged.
absl::StatusOr<std::optional<TokenId>> ReadEosToken(
    const std::string& directory, const TokenizerSpec& spec);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_EOS_TOKEN_H_
