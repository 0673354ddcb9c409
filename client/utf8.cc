// SPDX-License-Identifier: Apache-2.0
#include "client/utf8.h"

#include <bit>
#include <cstdint>

namespace outrider::client {
namespace {

// The bytes of the character that `text` begins with; 0 where it begins with
// none.
size_t CharacterLength(absl::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  const size_t length = std::countl_one(first);
  if (length < 2 || length > 4 || length > text.size()) return 0;
  uint32_t code_point = first & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    code_point = code_point << 6 | (byte & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  const bool is_valid = code_point >= kSmallest[length] &&
                        code_point <= 0x10ffff && !is_surrogate;
  return is_valid ? length : 0;
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

}  // namespace outrider::client
