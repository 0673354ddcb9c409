// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_BYTE_ALPHABET_H_
#define OUTRIDER_CORE_TOKENIZER_BYTE_ALPHABET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace outrider {

// The 256 printable characters by which byte-level vocabularies spell bytes
// (GPT-2's bytes_to_unicode): printable Latin-1 stands for itself, the other
// bytes are U+0100 and up, in order.
std::string ByteToAlphabet(uint8_t byte);

// The bytes that `token` spells; none if a character is outside the alphabet.
// `token` must be valid UTF-8.
std::optional<std::string> AlphabetToBytes(absl::string_view token);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_BYTE_ALPHABET_H_
