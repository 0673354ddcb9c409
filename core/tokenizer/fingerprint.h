// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_FINGERPRINT_H_
#define OUTRIDER_CORE_TOKENIZER_FINGERPRINT_H_

#include <string>

#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// Hex SHA-256 over every field of `spec`. How a file spells the same content
// (order of keys, form of the merges, version, fields without effect) does not
// change it.
std::string FingerprintOf(const TokenizerSpec& spec);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_FINGERPRINT_H_
