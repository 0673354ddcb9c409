// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_TOKEN_BYTES_H_
#define OUTRIDER_CORE_TOKENIZER_TOKEN_BYTES_H_

#include <cstddef>
#include <optional>

#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// See Tokenizer::max_bytes_per_token.
std::optional<size_t> MaxBytesPerToken(const TokenizerSpec& spec);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_TOKEN_BYTES_H_
