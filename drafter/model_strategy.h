// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_MODEL_STRATEGY_H_
#define OUTRIDER_DRAFTER_MODEL_STRATEGY_H_

#include <memory>

#include "core/drafting/draft_strategy.h"

namespace outrider {

// Drafts with a small model: K rows one after another, each token drawn from
// its processed row cut to the top N; fewer than K where the model is unsure.
// Stateless.
class ModelStrategy final : public DraftStrategy {
 public:
  // `vocab_size` is the tokenizer's: what the head is padded with is cut off.
  explicit ModelStrategy(int vocab_size) : vocab_size_(vocab_size) {}

  std::unique_ptr<DraftInProgress> Begin(const DraftContext& context,
                                         uint64_t start) const override;

 private:
  const int vocab_size_;
};

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_MODEL_STRATEGY_H_
