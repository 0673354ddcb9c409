// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/digits.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

// What is numeric since Unicode 16 and 17, which ICU 72 does not know yet.
struct CodePoints {
  char32_t first = 0;
  char32_t last = 0;
};
constexpr CodePoints kNewerDigits[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9},
    {0x11DE0, 0x11DE9}, {0x16130, 0x16139}, {0x16D70, 0x16D79},
    {0x16FF4, 0x16FF6}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};

bool IsNumeric(char32_t c) {
  if (c < 0x80) return absl::ascii_isdigit(static_cast<unsigned char>(c));
  if (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) return true;
  return c >= kNewerDigits[0].first &&
         std::any_of(std::begin(kNewerDigits), std::end(kNewerDigits),
                     [c](const CodePoints& range) {
                       return range.first <= c && c <= range.last;
                     });
}

}  // namespace

size_t StretchEnd(Digits digits, absl::string_view text, size_t begin) {
  if (digits == Digits::kWithText) return text.size();
  size_t end = begin;
  const bool is_numeric = IsNumeric(NextCodePoint(text, &end));
  if (is_numeric && digits == Digits::kEachAlone) return end;
  for (size_t next = end; next < text.size(); end = next) {
    if (IsNumeric(NextCodePoint(text, &next)) != is_numeric) break;
  }
  return end;
}

}  // namespace outrider
