// SPDX-License-Identifier: Apache-2.0
#include "core/drafting/ngram_strategy.h"

#include <algorithm>

namespace outrider {
namespace {

// All of it is there at once.
class NgramDraft final : public DraftInProgress {
 public:
  NgramDraft(const DraftContext& context, const PromptLookup::Options& options)
      : context_(context), options_(options) {}

  int num_rows() const override { return 0; }
  absl::StatusOr<bool> Take(const LogitRows& /*rows*/) override {
    const absl::Span<const TokenId> text = context_.committed;
    const absl::Span<const TokenId> found =
        PromptLookup::Find(text, options_).continuation;
    const size_t count =
        std::min<size_t>(context_.max_draft_tokens, found.size());
    draft_ = Draft::OneHot(/*start=*/text.size(), found.first(count));
    return false;
  }

 private:
  const DraftContext& context_;
  const PromptLookup::Options options_;
};

}  // namespace

std::unique_ptr<DraftInProgress> NgramStrategy::Begin(
    const DraftContext& context, uint64_t /*start*/) const {
  return std::make_unique<NgramDraft>(context, options_);
}

}  // namespace outrider
