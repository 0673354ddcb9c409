// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_TOKEN_H_
#define OUTRIDER_CORE_BASE_TOKEN_H_

#include <cstdint>
#include <vector>

namespace outrider {

// An index into the tokenizer's vocabulary, in [0, vocab_size).
using TokenId = int32_t;
using TokenSeq = std::vector<TokenId>;

// An id as a message carried it, for errors: ids of 2^31 and more are negative
// here.
inline uint32_t AsSent(TokenId token) { return static_cast<uint32_t>(token); }

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_TOKEN_H_
