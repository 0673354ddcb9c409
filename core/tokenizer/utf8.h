// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_UTF8_H_
#define OUTRIDER_CORE_TOKENIZER_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace outrider {

constexpr char kReplacementCharacter[] = "\xEF\xBF\xBD";  // U+FFFD

// Assembles bytes that arrive in any pieces into valid UTF-8. What cannot
// become a character comes out as one U+FFFD per maximal subpart (Unicode 15.0,
// section 3.9), the way Rust's from_utf8_lossy does it. Holds back at most
// three bytes. Thread-compatible.
class Utf8Assembler {
 public:
  // Appends to `out` the characters that these bytes complete.
  void Append(absl::string_view bytes, std::string* out);
  // Appends U+FFFD for an unfinished character, if there is one; the assembler
  // is then as new.
  void Finish(std::string* out);

 private:
  void AppendByte(char c, std::string* out);

  std::string pending_;  // the start of a character
  int num_missing_ = 0;  // continuation bytes that it lacks
  uint8_t low_ = 0x80;   // what the next of them may be,
  uint8_t high_ = 0xBF;  // at least and at most
};

// The bytes as valid UTF-8.
std::string LossyUtf8(absl::string_view bytes);
bool IsValidUtf8(absl::string_view bytes);

// The code point at `text[*position]`, which it steps over. `text` must be
// valid UTF-8 and `*position` the start of a character in it.
char32_t NextCodePoint(absl::string_view text, size_t* position);
// The code point that ends before `position`, which must be positive and the
// end of a character in valid UTF-8.
char32_t PreviousCodePoint(absl::string_view text, size_t position);
void AppendUtf8(char32_t code_point, std::string* out);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_UTF8_H_
