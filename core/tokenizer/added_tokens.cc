// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/added_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <utility>

#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

// \w of the reference's regular expressions. They know letters of Unicode 15.1
// and 16 that ICU 72 (Unicode 15.0) does not; nothing else differs.
bool IsWordCharacter(char32_t c) {
  const auto code_point = static_cast<UChar32>(c);
  constexpr uint32_t kCategories = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_isUAlphabetic(code_point) ||
         (U_GET_GC_MASK(code_point) & kCategories) != 0 ||
         u_hasBinaryProperty(code_point, UCHAR_JOIN_CONTROL);
}

bool IsSpace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }

bool TouchesWord(absl::string_view text, size_t begin, size_t end) {
  return (begin > 0 && IsWordCharacter(PreviousCodePoint(text, begin))) ||
         (end < text.size() && IsWordCharacter(NextCodePoint(text, &end)));
}

// Where the white space that ends before `position` begins, not looking before
// `limit`.
size_t SpaceBegin(absl::string_view text, size_t limit, size_t position) {
  while (position > limit) {
    const char32_t c = PreviousCodePoint(text, position);
    if (!IsSpace(c)) break;
    do {
      --position;
    } while ((static_cast<uint8_t>(text[position]) & 0xC0) == 0x80);
  }
  return position;
}

size_t SpaceEnd(absl::string_view text, size_t position) {
  for (size_t next = position; next < text.size();) {
    if (!IsSpace(NextCodePoint(text, &next))) break;
    position = next;
  }
  return position;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens,
                                   absl::Span<const std::string> patterns)
    : tokens_(std::move(tokens)), nodes_(1) {
  for (size_t i = 0; i < patterns.size(); ++i) Insert(patterns[i], i);
}

void AddedTokenFinder::Insert(absl::string_view pattern, size_t token_index) {
  if (pattern.empty()) return;
  uint32_t node = 0;
  for (const char c : pattern) {
    const uint64_t key = uint64_t{node} << 8 | static_cast<uint8_t>(c);
    const auto [it, is_new] = children_.try_emplace(key, nodes_.size());
    if (is_new) nodes_.emplace_back();
    node = it->second;
  }
  // The first of two tokens that look the same counts, as in the reference.
  if (!nodes_[node]) nodes_[node] = token_index;
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::LongestAt(
    absl::string_view text, size_t begin) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const auto it =
        children_.find(uint64_t{node} << 8 | static_cast<uint8_t>(text[i]));
    if (it == children_.end()) break;
    node = it->second;
    if (const auto index = nodes_[node]) {
      longest = Match{.index = *index, .end = i + 1};
    }
  }
  return longest;
}

std::vector<TextSegment> AddedTokenFinder::Split(absl::string_view text) const {
  std::vector<TextSegment> segments;
  size_t rest = 0;  // where the text after the last token begins
  for (size_t begin = 0; begin < text.size();) {
    const std::optional<Match> match = LongestAt(text, begin);
    if (!match) {
      ++begin;
      continue;
    }
    const AddedToken& token = tokens_[match->index];
    size_t end = match->end;
    if (token.single_word && TouchesWord(text, begin, end)) {
      begin = end;
      continue;
    }
    // White space that an earlier token took is not there any more.
    const size_t from =
        token.lstrip
            ? std::max(SpaceBegin(text, std::min(rest, begin), begin), rest)
            : begin;
    if (token.rstrip) end = SpaceEnd(text, end);
    if (rest < from)
      segments.push_back({.text = text.substr(rest, from - rest)});
    segments.push_back(
        {.token = token.id, .text = text.substr(begin, match->end - begin)});
    rest = end;
    begin = match->end;  // the search goes on after the match, as it stood
  }
  if (rest < text.size()) segments.push_back({.text = text.substr(rest)});
  return segments;
}

}  // namespace outrider
