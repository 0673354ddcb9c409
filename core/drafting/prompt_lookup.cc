// SPDX-License-Identifier: Apache-2.0
#include "core/drafting/prompt_lookup.h"

namespace outrider {
namespace {

// How many tokens before `end` equal the last tokens of `text`, at most `most`.
int MatchLength(absl::Span<const TokenId> text, int end, int most) {
  int length = 0;
  while (length < most && length < end &&
         text[end - 1 - length] == text[text.size() - 1 - length]) {
    ++length;
  }
  return length;
}

}  // namespace

PromptLookup::Match PromptLookup::Find(absl::Span<const TokenId> text,
                                       const Options& options) {
  int best_end = 0;
  int best_length = options.min_match - 1;
  for (int end = static_cast<int>(text.size()) - 1; end > 0; --end) {
    const int length = MatchLength(text, end, options.max_match);
    if (length > best_length) {
      best_end = end;
      best_length = length;
      if (length == options.max_match) break;
    }
  }
  if (best_length < options.min_match) return {};
  return {.length = best_length, .continuation = text.subspan(best_end)};
}

}  // namespace outrider
