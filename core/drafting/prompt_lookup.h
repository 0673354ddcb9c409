// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_DRAFTING_PROMPT_LOOKUP_H_
#define OUTRIDER_CORE_DRAFTING_PROMPT_LOOKUP_H_

#include "absl/types/span.h"
#include "core/base/token.h"

namespace outrider {

// Prompt lookup decoding (Saxena 2023; "ngram" in vLLM): the longest end of a
// text that occurred in it before, and what followed there. Among equals it
// is the latest, which is the most like now.
struct PromptLookup {
  struct Options {
    int max_match = 4;  // longest end that is looked for, in tokens
    int min_match = 2;  // shorter ones are no evidence
  };
  struct Match {
    int length = 0;  // tokens of the end that was found; 0: none
    absl::Span<const TokenId> continuation = {};  // of the text, up to its end
  };

  // The match points into `text`. Time: its length, nearly.
  static Match Find(absl::Span<const TokenId> text, const Options& options);
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_DRAFTING_PROMPT_LOOKUP_H_
