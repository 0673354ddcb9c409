// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/utf8.h"

namespace outrider {

void Utf8Assembler::Append(absl::string_view bytes, std::string* out) {
  for (const char c : bytes) AppendByte(c, out);
}

void Utf8Assembler::Finish(std::string* out) {
  if (pending_.empty()) return;
  pending_.clear();
  out->append(kReplacementCharacter);
}

void Utf8Assembler::AppendByte(char c, std::string* out) {
  const uint8_t byte = static_cast<uint8_t>(c);
  if (!pending_.empty()) {
    if (byte >= low_ && byte <= high_) {
      pending_ += c;
      low_ = 0x80;
      high_ = 0xBF;
      if (--num_missing_ > 0) return;
      out->append(pending_);
      pending_.clear();
      return;
    }
    Finish(out);  // and the byte starts anew
  }
  if (byte < 0x80) {
    *out += c;
    return;
  }
  if (byte < 0xC2 || byte > 0xF4) {  // a continuation, overlong, or too large
    out->append(kReplacementCharacter);
    return;
  }
  pending_ = c;
  num_missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  // No overlong forms, no surrogates, nothing above U+10FFFF.
  low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
  high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
}

std::string LossyUtf8(absl::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  Utf8Assembler assembler;
  assembler.Append(bytes, &text);
  assembler.Finish(&text);
  return text;
}

// A replacement differs from what it replaces: U+FFFD itself is valid.
bool IsValidUtf8(absl::string_view bytes) { return LossyUtf8(bytes) == bytes; }

char32_t NextCodePoint(absl::string_view text, size_t* position) {
  const auto at = [&](size_t offset) {
    return static_cast<char32_t>(
        static_cast<uint8_t>(text[*position + offset]));
  };
  const char32_t lead = at(0);
  char32_t code_point = lead;
  size_t length = 1;
  if (lead >= 0xF0) {
    code_point = (lead & 0x07) << 18 | (at(1) & 0x3F) << 12 |
                 (at(2) & 0x3F) << 6 | (at(3) & 0x3F);
    length = 4;
  } else if (lead >= 0xE0) {
    code_point = (lead & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F);
    length = 3;
  } else if (lead >= 0xC0) {
    code_point = (lead & 0x1F) << 6 | (at(1) & 0x3F);
    length = 2;
  }
  *position += length;
  return code_point;
}

char32_t PreviousCodePoint(absl::string_view text, size_t position) {
  do {
    --position;
  } while ((static_cast<uint8_t>(text[position]) & 0xC0) == 0x80);
  return NextCodePoint(text, &position);
}

void AppendUtf8(char32_t code_point, std::string* out) {
  const auto put = [&](char32_t byte) { *out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace outrider
