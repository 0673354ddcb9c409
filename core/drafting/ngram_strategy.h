// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_DRAFTING_NGRAM_STRATEGY_H_
#define OUTRIDER_CORE_DRAFTING_NGRAM_STRATEGY_H_

#include <memory>

#include "core/drafting/draft_strategy.h"
#include "core/drafting/prompt_lookup.h"

namespace outrider {

// Drafts by PromptLookup. Needs no model, draws nothing: each row is one-hot,
// so the rejection rule stays exact (q(x) = 1). Stateless.
class NgramStrategy final : public DraftStrategy {
 public:
  using Options = PromptLookup::Options;

  explicit NgramStrategy(Options options) : options_(options) {}

  std::unique_ptr<DraftInProgress> Begin(const DraftContext& context,
                                         uint64_t start) const override;

 private:
  const Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_DRAFTING_NGRAM_STRATEGY_H_
