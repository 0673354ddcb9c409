// SPDX-License-Identifier: Apache-2.0
#include "core/drafting/ngram_strategy.h"

#include <algorithm>
#include <utility>

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

absl::StatusOr<Proposal> NgramStrategy::Propose(const DraftContext& context) {
  const absl::Span<const TokenId> text = context.committed;
  Proposal proposal = {.draft = {.start = text.size()}};

  // The longest match; among equals the latest, which is the most like now.
  int best_end = 0;
  int best_length = options_.min_match - 1;
  for (int end = static_cast<int>(text.size()) - 1; end > 0; --end) {
    const int length = MatchLength(text, end, options_.max_match);
    if (length > best_length) {
      best_end = end;
      best_length = length;
      if (length == options_.max_match) break;
    }
  }
  if (best_length < options_.min_match) return proposal;

  const size_t count =
      std::min<size_t>(context.max_draft_tokens, text.size() - best_end);
  for (const TokenId token : text.subspan(best_end, count)) {
    proposal.draft.tokens.push_back(token);
    proposal.draft.distributions.push_back(Distribution::OneHot(token));
  }
  return proposal;
}

}  // namespace outrider
