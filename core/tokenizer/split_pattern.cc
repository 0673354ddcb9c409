// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/split_pattern.h"

#include <unicode/uchar.h>

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

constexpr char kLlama3Regex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2Regex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kGpt2Regex[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)"
    R"(\s+(?!\S)|\s+)";

constexpr size_t kUnlimited = static_cast<size_t>(-1);

// A set of character classes; every character is in exactly one.
using Classes = unsigned;
constexpr Classes kLetter = 1;
constexpr Classes kNumber = 2;
constexpr Classes kNewline = 4;  // \r and \n
constexpr Classes kBlank = 8;    // other white space
constexpr Classes kOther = 16;
constexpr Classes kSpace = kNewline | kBlank;

Classes ClassOf(char32_t c) {
  if (c < 0x80) {
    const auto ascii = static_cast<unsigned char>(c);
    if (absl::ascii_isalpha(ascii)) return kLetter;
    if (absl::ascii_isdigit(ascii)) return kNumber;
    if (c == '\r' || c == '\n') return kNewline;
    return absl::ascii_isspace(ascii) ? kBlank : kOther;
  }
  const auto code_point = static_cast<UChar32>(c);
  const uint32_t category = U_GET_GC_MASK(code_point);
  if (category & U_GC_L_MASK) return kLetter;
  if (category & U_GC_N_MASK) return kNumber;
  return u_isUWhiteSpace(code_point) ? kBlank : kOther;
}

// The classes of the character at `position`; none at the end of the text.
Classes ClassAt(absl::string_view text, size_t position) {
  return position < text.size() ? ClassOf(NextCodePoint(text, &position)) : 0;
}

size_t RunEnd(absl::string_view text, size_t begin, Classes classes,
              size_t max_length = kUnlimited) {
  size_t end = begin;
  for (size_t next = begin; next < text.size() && max_length-- > 0;) {
    if (!(ClassOf(NextCodePoint(text, &next)) & classes)) break;
    end = next;
  }
  return end;
}

enum class Case { kExact, kIgnored };

// 's|'t|'re|'ve|'m|'ll|'d, or `begin` if none is there.
size_t ContractionEnd(absl::string_view text, size_t begin, Case letter_case) {
  if (text[begin] != '\'') return begin;
  const absl::string_view rest = text.substr(begin + 1);
  for (const absl::string_view ending :
       {"s", "t", "re", "ve", "m", "ll", "d"}) {
    if (letter_case == Case::kExact
            ? absl::StartsWith(rest, ending)
            : absl::StartsWithIgnoreCase(rest, ending)) {
      return begin + 1 + ending.size();
    }
  }
  // The long s is the one other character whose case folding is among these.
  constexpr absl::string_view kLongS = "\xC5\xBF";
  if (letter_case == Case::kIgnored && absl::StartsWith(rest, kLongS)) {
    return begin + 1 + kLongS.size();
  }
  return begin;
}

// \s+(?!\S)|\s+ where white space begins: the last of it is left to the word
// that follows.
size_t WhiteSpaceEnd(absl::string_view text, size_t begin) {
  const size_t end = RunEnd(text, begin, kSpace);
  if (end == text.size()) return end;
  size_t last = end - 1;
  while ((static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
  return last > begin ? last : end;
}

size_t Gpt2PieceEnd(absl::string_view text, size_t begin) {
  const size_t contraction = ContractionEnd(text, begin, Case::kExact);
  if (contraction > begin) return contraction;
  const size_t word = text[begin] == ' ' ? begin + 1 : begin;
  const Classes first = ClassAt(text, word);
  if (first & (kLetter | kNumber | kOther)) return RunEnd(text, word, first);
  return WhiteSpaceEnd(text, begin);
}

// The expressions of Llama 3 and Qwen2 differ in \p{N}{1,3} and \p{N}.
size_t Llama3PieceEnd(absl::string_view text, size_t begin,
                      size_t max_number_length) {
  const size_t contraction = ContractionEnd(text, begin, Case::kIgnored);
  if (contraction > begin) return contraction;

  size_t second = begin;
  const Classes first = ClassOf(NextCodePoint(text, &second));
  if (first == kLetter) return RunEnd(text, begin, kLetter);
  if (first == kNumber) return RunEnd(text, begin, kNumber, max_number_length);
  if (first != kNewline && ClassAt(text, second) == kLetter) {
    return RunEnd(text, second, kLetter);
  }

  const size_t symbols = text[begin] == ' ' ? second : begin;
  if (ClassAt(text, symbols) == kOther) {
    return RunEnd(text, RunEnd(text, symbols, kOther), kNewline);
  }

  const size_t end = RunEnd(text, begin, kSpace);
  const size_t newline = text.substr(begin, end - begin).find_last_of("\r\n");
  if (newline != absl::string_view::npos) return begin + newline + 1;
  return WhiteSpaceEnd(text, begin);
}

}  // namespace

std::optional<SplitPattern> KnownSplitPattern(absl::string_view regex) {
  if (regex == kGpt2Regex) return SplitPattern::kGpt2;
  if (regex == kLlama3Regex) return SplitPattern::kLlama3;
  if (regex == kQwen2Regex) return SplitPattern::kQwen2;
  return std::nullopt;
}

size_t PieceEnd(SplitPattern pattern, absl::string_view text, size_t begin) {
  switch (pattern) {
    case SplitPattern::kGpt2:
      return Gpt2PieceEnd(text, begin);
    case SplitPattern::kLlama3:
      return Llama3PieceEnd(text, begin, /*max_number_length=*/3);
    case SplitPattern::kQwen2:
      return Llama3PieceEnd(text, begin, /*max_number_length=*/1);
    case SplitPattern::kWhole:
      break;
  }
  return text.size();
}

}  // namespace outrider
