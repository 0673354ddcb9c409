// SPDX-License-Identifier: Apache-2.0
#include "core/drafting/ngram_strategy.h"

#include <algorithm>

namespace outrider {

absl::StatusOr<Proposal> NgramStrategy::Propose(const DraftContext& context) {
  const absl::Span<const TokenId> text = context.committed;
  const absl::Span<const TokenId> found =
      PromptLookup::Find(text, options_).continuation;
  const size_t count = std::min<size_t>(context.max_draft_tokens, found.size());
  return Proposal{.draft =
                      Draft::OneHot(/*start=*/text.size(), found.first(count))};
}

}  // namespace outrider
